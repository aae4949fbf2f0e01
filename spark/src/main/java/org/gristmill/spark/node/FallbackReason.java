package org.gristmill.spark.node;

import java.util.List;
import java.util.Optional;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkConf;
import org.gristmill.core.format.PartitionIndex;
import org.gristmill.core.plan.Settings;

/** Why a shuffle goes to Spark's sort shuffle instead. */
public interface FallbackReason {
  /** A shuffle that is being registered. */
  record Shuffle(SparkConf conf, Settings settings, ShuffleDependency<?, ?, ?> dependency, boolean oneProcess) {
    long maps() {
      return dependency.rdd().getNumPartitions();
    }

    int partitions() {
      return dependency.partitioner().numPartitions();
    }
  }

  /** The reason in a sentence for the log, and what can be done about it, if it holds. */
  Optional<String> check(Shuffle shuffle);

  /**
   * True if the shuffle would be wrong with us, not only no faster: then {@code spark.gristmill.fallback=false} is an
   * error.
   */
  default boolean mustFallBack() {
    return true;
  }

  /** True if the reason holds for every shuffle of the application. */
  default boolean always() {
    return true;
  }

  /** A reason that holds. */
  record Found(String name, String sentence, boolean always) {}

  List<FallbackReason> ALL = List.of(new TooManyPartitions(), new ExternalService(), new PushBasedMerge(), new OldFetchProtocol(),
      new OtherDataPath(), new FallbackStorage(), new OneProcess(), new TooSmall());

  static Optional<Found> firstFor(SparkConf conf, Settings settings, ShuffleDependency<?, ?, ?> dependency,
      boolean oneProcess) {
    Shuffle shuffle = new Shuffle(conf, settings, dependency, oneProcess);
    boolean allowed = settings.flag(Settings.FALLBACK);
    for (FallbackReason reason : ALL) {
      Optional<String> found = reason.check(shuffle);
      if (found.isPresent() && allowed) {
        return Optional.of(new Found(reason.getClass().getSimpleName(), found.get(), reason.always()));
      }
      if (found.isPresent() && reason.mustFallBack()) {
        throw new IllegalStateException(Settings.FALLBACK.key() + " is false, but " + found.get());
      }
    }
    return Optional.empty();
  }

  record TooManyPartitions() implements FallbackReason {
    @Override
    public Optional<String> check(Shuffle s) {
      return s.partitions() <= PartitionIndex.PARTITIONS_MAX
          ? Optional.empty()
          : Optional.of("it has " + s.partitions() + " partitions, at most " + PartitionIndex.PARTITIONS_MAX + " can be named");
    }

    @Override
    public boolean always() {
      return false;
    }
  }

  /** Partition files belong to executors; the external shuffle service cannot serve them after these have gone. */
  record ExternalService() implements FallbackReason {
    @Override
    public Optional<String> check(Shuffle s) {
      return s.conf.getBoolean("spark.shuffle.service.enabled", false)
          ? Optional.of("spark.shuffle.service.enabled is true, and the service cannot serve our partition files; set it to false")
          : Optional.empty();
    }
  }

  record PushBasedMerge() implements FallbackReason {
    @Override
    public Optional<String> check(Shuffle s) {
      return s.conf.getBoolean("spark.shuffle.push.enabled", false)
          ? Optional.of("spark.shuffle.push.enabled is true, and Spark pushes only the sort shuffle's files; set it to false")
          : Optional.empty();
    }
  }

  record OldFetchProtocol() implements FallbackReason {
    @Override
    public Optional<String> check(Shuffle s) {
      return s.conf.getBoolean("spark.shuffle.useOldFetchProtocol", false)
          ? Optional.of("spark.shuffle.useOldFetchProtocol is true, and ranges of a partition need the new protocol; set it to false")
          : Optional.empty();
    }
  }

  /** A plugin that a user has chosen to keep the sort shuffle's files elsewhere, as on remote storage. */
  record OtherDataPath() implements FallbackReason {
    private static final String KEY = "spark.shuffle.sort.io.plugin.class";
    private static final String SPARKS_OWN = "org.apache.spark.shuffle.sort.io.LocalDiskShuffleDataIO";

    @Override
    public Optional<String> check(Shuffle s) {
      String set = s.conf.get(KEY, SPARKS_OWN).trim();
      return set.equals(SPARKS_OWN)
          ? Optional.empty()
          : Optional.of(KEY + " is " + set + ", which would not get our files; remove that setting to use Gristmill and local disks");
    }
  }

  /** Executors that are decommissioned would copy the sort shuffle's files there. */
  record FallbackStorage() implements FallbackReason {
    private static final String KEY = "spark.storage.decommission.fallbackStorage.path";

    @Override
    public Optional<String> check(Shuffle s) {
      return s.conf.getBoolean("spark.decommission.enabled", false) && s.conf.contains(KEY)
          ? Optional.of(KEY + " is " + s.conf.get(KEY) + ", and executors that leave do not copy our partitions there; remove that setting")
          : Optional.empty();
    }
  }

  record OneProcess() implements FallbackReason {
    @Override
    public Optional<String> check(Shuffle s) {
      return s.oneProcess
          ? Optional.of("driver and executor are one process, there is nowhere to send to; use a cluster, or"
              + " --master \"local-cluster[2,1,1024]\" for executors of their own on this machine")
          : Optional.empty();
    }

    @Override
    public boolean mustFallBack() {
      return false;
    }
  }

  record TooSmall() implements FallbackReason {
    @Override
    public Optional<String> check(Shuffle s) {
      long blocks = s.maps() * s.partitions();
      long least = s.settings.number(Settings.BLOCKS_MIN);
      return blocks >= least
          ? Optional.empty()
          : Optional.of("it has " + blocks + " blocks (maps times partitions), fewer than " + Settings.BLOCKS_MIN.key() + "=" + least
              + ": there is nothing to gain; set that lower to use it all the same");
    }

    @Override
    public boolean mustFallBack() {
      return false;
    }

    @Override
    public boolean always() {
      return false;
    }
  }
}
