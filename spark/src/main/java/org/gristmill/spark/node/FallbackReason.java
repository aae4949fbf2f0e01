package org.gristmill.spark.node;

import java.util.List;
import java.util.Optional;
import java.util.function.Function;
import java.util.function.Supplier;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkConf;
import org.gristmill.core.format.PartitionIndex;
import org.gristmill.core.plan.Settings;

/**
 * Why a shuffle goes to Spark's sort shuffle instead.
 *
 * @param mustFallBack true if the shuffle would be wrong with us, not only no faster: then
 *     {@code spark.gristmill.fallback=false} is an error
 * @param always true if the reason holds for every shuffle of the application
 * @param check the reason in a sentence for the log, and what can be done about it; null if it does not hold
 */
public record FallbackReason(String name, boolean mustFallBack, boolean always, Function<Shuffle, String> check) {
  /**
   * A shuffle that is being registered.
   *
   * @param uploadError why Spark's serialiser cannot write what goes with an upload; null if it can
   */
  public record Shuffle(SparkConf conf, Settings settings, ShuffleDependency<?, ?, ?> dependency, boolean oneProcess,
      Supplier<String> uploadError) {
    /** The sentence, if a setting of Spark is true. */
    String ifSet(String key, String sentence) {
      return conf.getBoolean(key, false) ? key + " is true, and " + sentence + "; set it to false" : null;
    }
  }

  /** A reason that holds. */
  public record Found(String name, String sentence, boolean always) {}

  private static final String DATA_PATH = "spark.shuffle.sort.io.plugin.class";
  private static final String SPARKS_OWN = "org.apache.spark.shuffle.sort.io.LocalDiskShuffleDataIO";
  private static final String STORAGE = "spark.storage.decommission.fallbackStorage.path";

  private static final List<FallbackReason> ALL = List.of(
      new FallbackReason("TooManyPartitions", true, false, FallbackReason::tooManyPartitions),
      // Partition files belong to executors; the external shuffle service cannot serve them after these have gone.
      new FallbackReason("ExternalService", true, true,
          s -> s.ifSet("spark.shuffle.service.enabled", "the service cannot serve our partition files")),
      new FallbackReason("PushBasedMerge", true, true,
          s -> s.ifSet("spark.shuffle.push.enabled", "Spark pushes only the sort shuffle's files")),
      new FallbackReason("OldFetchProtocol", true, true,
          s -> s.ifSet("spark.shuffle.useOldFetchProtocol", "ranges of a partition need the new protocol")),
      new FallbackReason("OtherDataPath", true, true, FallbackReason::otherDataPath),
      new FallbackReason("FallbackStorage", true, true, FallbackReason::fallbackStorage),
      new FallbackReason("OneProcess", false, true, s -> s.oneProcess
          ? "driver and executor are one process, there is nowhere to send to; use a cluster, or"
              + " --master \"local-cluster[2,1,1024]\" for executors of their own on this machine"
          : null),
      new FallbackReason("UnregisteredClass", true, true, FallbackReason::unregisteredClass),
      new FallbackReason("TooSmall", false, false, FallbackReason::tooSmall));

  public static Optional<Found> firstFor(SparkConf conf, Settings settings, ShuffleDependency<?, ?, ?> dependency, boolean oneProcess,
      Supplier<String> uploadError) {
    Shuffle shuffle = new Shuffle(conf, settings, dependency, oneProcess, uploadError);
    boolean allowed = settings.flag(Settings.FALLBACK);
    for (FallbackReason reason : ALL) {
      String found = reason.check.apply(shuffle);
      if (found != null && allowed) {
        return Optional.of(new Found(reason.name, found, reason.always));
      }
      if (found != null && reason.mustFallBack) {
        throw new IllegalStateException(Settings.FALLBACK.key() + " is false, but " + found);
      }
    }
    return Optional.empty();
  }

  private static String tooManyPartitions(Shuffle s) {
    int partitions = s.dependency.partitioner().numPartitions();
    return partitions <= PartitionIndex.PARTITIONS_MAX
        ? null
        : "it has " + partitions + " partitions, at most " + PartitionIndex.PARTITIONS_MAX + " can be named";
  }

  /** A plugin that a user has chosen to keep the sort shuffle's files elsewhere, as on remote storage. */
  private static String otherDataPath(Shuffle s) {
    String set = s.conf.get(DATA_PATH, SPARKS_OWN).trim();
    return set.equals(SPARKS_OWN)
        ? null
        : DATA_PATH + " is " + set + ", which would not get our files; remove that setting to use Gristmill and local disks";
  }

  /** Executors that are decommissioned would copy the sort shuffle's files there. */
  private static String fallbackStorage(Shuffle s) {
    return s.conf.getBoolean("spark.decommission.enabled", false) && s.conf.contains(STORAGE)
        ? STORAGE + " is " + s.conf.get(STORAGE) + ", and executors that leave do not copy our partitions there; remove that setting"
        : null;
  }

  /** Spark from 4.3 on does not register with Kryo what it sends along with every block. */
  private static String unregisteredClass(Shuffle s) {
    String error = s.oneProcess ? null : s.uploadError.get();
    return error == null
        ? null
        : "Spark's own message that goes with an upload cannot be serialised (" + error + "); add that class to"
            + " spark.kryo.classesToRegister, or set spark.kryo.registrationRequired to false";
  }

  private static String tooSmall(Shuffle s) {
    long blocks = (long) s.dependency.rdd().getNumPartitions() * s.dependency.partitioner().numPartitions();
    long least = s.settings.number(Settings.BLOCKS_MIN);
    return blocks >= least
        ? null
        : "it has " + blocks + " blocks (maps times partitions), fewer than " + Settings.BLOCKS_MIN.key() + "=" + least
            + ": there is nothing to gain; set that lower to use it all the same";
  }
}
