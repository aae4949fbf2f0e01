package org.apache.spark.shuffle.gristmill;

import static org.gristmill.spark.node.PluginLog.LOG;

import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiFunction;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.api.python.PythonPartitioner;
import org.apache.spark.serializer.KryoSerializer;
import org.apache.spark.serializer.Serializer;
import org.apache.spark.serializer.SerializerInstance;
import org.apache.spark.shuffle.ShuffleBlockResolver;
import org.apache.spark.shuffle.ShuffleHandle;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.shuffle.ShuffleReader;
import org.apache.spark.shuffle.ShuffleWriteMetricsReporter;
import org.apache.spark.shuffle.ShuffleWriter;
import org.apache.spark.shuffle.sort.SortShuffleManager;
import org.gristmill.core.driver.Coordinator;
import org.gristmill.core.plan.Executor;
import org.gristmill.core.plan.Recovery;
import org.gristmill.core.plan.SettingNames;
import org.gristmill.core.plan.Settings;
import org.gristmill.core.read.PartitionSource;
import org.gristmill.core.read.SelectedSegments;
import org.gristmill.spark.node.ExecutorNode;
import org.gristmill.spark.node.FallbackLog;
import org.gristmill.spark.node.FallbackReason;
import org.gristmill.spark.reader.MapStatuses;
import org.gristmill.spark.reader.PartitionOpener;
import org.gristmill.spark.reader.RecordIterator;
import org.gristmill.spark.writer.MapOutputWriter;
import org.gristmill.spark.writer.PartitionBuffers;
import org.gristmill.spark.writer.WriteMetrics;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/**
 * The plugin: {@code spark.shuffle.manager=org.apache.spark.shuffle.gristmill.GristmillShuffleManager}. One instance
 * lives in the driver, where it registers shuffles and runs the {@link DriverEndpoint}, and one in each executor, where
 * it gives tasks their writers and readers and runs the {@link ExecutorNode}; in local mode one instance is both.
 * Shuffles that we cannot help go to a sort shuffle manager of our own.
 */
public final class GristmillShuffleManager implements SparkTransfer {
  /**
   * Shared by the tasks of one shuffle in this executor: the size that buffers grow to, and Kryo's serialiser. Each
   * task has its own copy of a serialiser, and Kryo takes milliseconds and looks up many classes for the first instance
   * that is made of a copy. Other serialisers are not shared, because those of SQL count the bytes of their own task.
   */
  private record Shared(Serializer serializer, AtomicInteger bufferBytes) {}

  private static final long SECONDS_MAX = 1000 * 24 * 3600; // a thousand days can be counted in nanoseconds

  private final SparkConf conf;
  private final Settings settings;
  private final SparkEnv env;
  private final boolean isExecutor;
  private final long timeoutMs;
  private final StatusLocations locations;
  private final SegmentCodec codec;
  private final long inFlightBytes;
  private final SortShuffleManager sort;
  private final GristmillResolver resolver;
  private final FallbackLog fallbacks = new FallbackLog(LOG);
  private final EnvironmentPage page;
  private final Map<Integer, Shared> shared = new ConcurrentHashMap<>();
  private final Thread starter;
  private DriverEndpoint driver;
  private ExecutorNode node;
  private boolean stopped;

  public GristmillShuffleManager(SparkConf conf, boolean isDriver) {
    SparkFit.check(); // before all that differs between versions of Spark
    this.conf = conf;
    page = new EnvironmentPage(conf);
    env = SparkEnv.get();
    settings = new Settings(key -> conf.get(key, null));
    if (isDriver) {
      settings.check();
      List<String> set = Arrays.stream(conf.getAllWithPrefix(Settings.PREFIX)).map(entry -> Settings.PREFIX + entry._1()).toList();
      SettingNames.withoutEffect(set).forEach(LOG::warn);
    }
    String master = conf.get("spark.master", "");
    isExecutor = !isDriver || master.equals("local") || master.startsWith("local[");
    long set = settings.number(Settings.TIMEOUT);
    timeoutMs = set > 0 ? set : Math.min(conf.getTimeAsSeconds("spark.network.timeout", "120s"), SECONDS_MAX) * 1000;
    locations = new StatusLocations(settings.word(Settings.LOCALITY).equals("executor"));
    codec = new SegmentCodec(conf, env.serializerManager());
    inFlightBytes = inFlightBytes(conf);
    sort = new SortShuffleManager(conf);
    resolver = new GristmillResolver(conf, settings, this::node, sort.shuffleBlockResolver());
    if (isDriver) {
      Recovery recovery = Recovery.valueOf(settings.word(Settings.RECOVERY).toUpperCase(Locale.ROOT));
      driver = new DriverEndpoint(env, locations, settings.share(Settings.PLAN_SHARE), recovery,
          settings.word(Settings.REDO).equals("strict"), timeoutMs);
      env.rpcEnv().setupEndpoint(Rpc.DRIVER, driver);
    }
    starter = new Thread(this::announce, "gristmill-start");
    starter.setDaemon(true);
    if (!isDriver) {
      starter.start();
    }
  }

  /**
   * Spark's setting in bytes. Spark itself takes whole MiB, so it refuses less than other byte sizes do; a plain number
   * counts MiB.
   */
  static long inFlightBytes(SparkConf conf) {
    String key = "spark.reducer.maxSizeInFlight";
    long mib = conf.getSizeAsMb(key, "48m");
    String set = conf.get(key, "48m").strip();
    boolean unit = !Character.isDigit(set.charAt(set.length() - 1));
    return mib >= Long.MAX_VALUE >> 20 ? Long.MAX_VALUE : unit ? conf.getSizeAsBytes(key, "48m") : mib << 20;
  }

  @Override
  public <K, V, C> ShuffleHandle registerShuffle(int shuffle, ShuffleDependency<K, V, C> dependency) {
    Optional<FallbackReason.Found> reason = FallbackReason.firstFor(conf, settings, dependency, isExecutor, this::uploadError);
    if (reason.isPresent()) {
      fallbacks.fellBack(shuffle, reason.get());
      page.fellBack(shuffle, dependency.rdd(), reason.get());
      return sort.registerShuffle(shuffle, dependency);
    }
    fallbacks.ours(shuffle);
    page.ours(shuffle, dependency.rdd());
    int maps = dependency.rdd().getNumPartitions();
    driver.watchExecutors(dependency.rdd().context());
    driver.node().coordinator().shuffleAdded(shuffle, maps, dependency.partitioner().numPartitions(),
        new WeakDependency(dependency));
    return new GristmillShuffleHandle<>(shuffle, dependency,
        dependency.serializer().supportsRelocationOfSerializedObjects());
  }

  /** See {@link FallbackReason.Shuffle}. Spark's block transfer uses the serialiser that the application has set. */
  private String uploadError() {
    ClassTag<Object> any = ClassTag$.MODULE$.Any();
    try {
      env.serializerManager().getSerializer(any, false).newInstance().serialize(SparkTransfer.uploadMessage(), any);
      return null;
    } catch (RuntimeException e) {
      Throwable cause = e.getCause() == null ? e : e.getCause();
      return String.valueOf(cause.getMessage()).lines().findFirst().orElse("");
    }
  }

  @Override
  public <K, V> ShuffleWriter<K, V> getWriter(ShuffleHandle handle, long mapId, TaskContext context,
      ShuffleWriteMetricsReporter metrics) {
    if (!(handle instanceof GristmillShuffleHandle<?, ?, ?>)) {
      return sort.getWriter(handle, mapId, context, metrics);
    }
    @SuppressWarnings("unchecked")
    GristmillShuffleHandle<K, V, ?> ours = (GristmillShuffleHandle<K, V, ?>) handle;
    ExecutorNode here = node();
    WriteMetrics numbers = new SparkWriter.Metrics(metrics, context);
    PartitionBuffers buffers = new PartitionBuffers(ours.dependency(), serializer(ours), ours.relocatable(),
        context, SparkTaskMemory.of(context), settings.size(Settings.SEGMENT_BYTES), settings.size(Settings.TASK_BYTES),
        shared(ours).bufferBytes, codec.writer(ours.shuffleId()),
        (partition, segment) -> here.add(ours.shuffleId(), partition, context.taskAttemptId(), segment), numbers);
    SparkVersion version = new SparkVersion(ours.dependency());
    return new SparkWriter<>(new MapOutputWriter<>(here, ours.dependency(), context, numbers, buffers, version), locations, version);
  }

  @Override
  public <K, C> ShuffleReader<K, C> getReader(ShuffleHandle handle, int startMap, int endMap, int startPartition,
      int endPartition, TaskContext context, ShuffleReadMetricsReporter metrics) {
    if (!(handle instanceof GristmillShuffleHandle<?, ?, ?>)) {
      return sort.getReader(handle, startMap, endMap, startPartition, endPartition, context, metrics);
    }
    @SuppressWarnings("unchecked")
    GristmillShuffleHandle<K, ?, C> ours = (GristmillShuffleHandle<K, ?, C>) handle;
    int shuffle = handle.shuffleId();
    ExecutorNode here = node();
    SparkReader.Metrics numbers = new SparkReader.Metrics(metrics, context);
    BiFunction<Executor, Integer, PartitionSource> remote = (home, partition) -> new RemoteSource(env.blockManager().blockTransferService(),
        here.fetchTimeout(), metrics, home, shuffle, partition);
    MapStatuses statuses = new SparkStatuses(env.mapOutputTracker(), shuffle, startMap, endMap, startPartition, endPartition);
    PartitionOpener opener = new PartitionOpener(here, remote, statuses, numbers, context, shuffle,
        startMap == 0 && endMap == Integer.MAX_VALUE, startPartition, endPartition, limits(ours));
    RecordIterator records = new RecordIterator(opener, serializer(ours), body -> codec.unwrap(shuffle, body),
        codec.canJoin(ours.relocatable()), numbers, context::killTaskIfInterrupted);
    return new SparkReader<>(ours.dependency(), records, context, env.blockManager(), numbers);
  }

  /**
   * Python packs records into batches as it reads them. So in another order a map that runs again would write other
   * batches, which nobody can tell from records that have moved; its partitions are read in the order of maps.
   */
  private SelectedSegments.Limits limits(GristmillShuffleHandle<?, ?, ?> handle) {
    return new SelectedSegments.Limits(settings.size(Settings.READ_BYTES), inFlightBytes / RecordIterator.OPENED_MAX,
        handle.dependency().partitioner() instanceof PythonPartitioner ? inFlightBytes : 0);
  }

  private SerializerInstance serializer(GristmillShuffleHandle<?, ?, ?> handle) {
    Serializer own = handle.dependency().serializer();
    return (own.getClass() == KryoSerializer.class ? shared(handle).serializer : own).newInstance();
  }

  private Shared shared(GristmillShuffleHandle<?, ?, ?> handle) {
    return shared.computeIfAbsent(handle.shuffleId(),
        shuffle -> new Shared(handle.dependency().serializer(), new AtomicInteger(PartitionBuffers.START_BYTES)));
  }

  @Override
  public boolean unregisterShuffle(int shuffle) {
    shared.remove(shuffle);
    ExecutorNode here;
    synchronized (this) {
      here = node;
    }
    if (here != null) {
      here.remove(shuffle);
    }
    if (driver != null) {
      driver.node().shuffleRemoved(shuffle);
    }
    return sort.unregisterShuffle(shuffle);
  }

  @Override
  public ShuffleBlockResolver shuffleBlockResolver() {
    return resolver;
  }

  @Override
  public void stop() {
    fallbacks.applicationEnds();
    starter.interrupt(); // first: it may be asking the driver
    synchronized (this) {
      stopped = true;
      if (node != null) {
        node.close();
      }
    }
    if (driver != null) {
      driver.stop();
    }
    sort.stop();
  }

  /** The driver's part, for tests. */
  Coordinator coordinator() {
    return driver.node().coordinator();
  }

  /** This executor's node, made when the block manager has its address. */
  private synchronized ExecutorNode node() {
    if (stopped) {
      throw new IllegalStateException("the shuffle manager was stopped");
    }
    if (node == null) {
      node = ExecutorNode.started(new ExecutorEndpoint(env), settings, timeoutMs);
    }
    return node;
  }

  /** An executor that has run no task of ours yet can be a home too: it reports as soon as it has an address. */
  private void announce() {
    try {
      long deadline = System.nanoTime() + timeoutMs * 1_000_000;
      while (env.blockManager().blockManagerId() == null && System.nanoTime() < deadline) {
        Thread.sleep(20);
      }
      node();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } catch (Throwable e) { // Spark's RPC throws checked exceptions without saying so
      LOG.warn("This executor could not report to the driver; it will with its first task", e);
    }
  }
}
