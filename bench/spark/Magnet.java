import java.io.IOException;
import org.apache.spark.SecurityManager;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.deploy.ExternalShuffleService;
import org.apache.spark.internal.config.package$;
import org.apache.spark.network.shuffle.ExternalBlockHandler;
import org.apache.spark.network.shuffle.RemoteBlockPushResolver;
import org.apache.spark.network.util.TransportConf;
import org.apache.spark.scheduler.ExternalClusterManager;
import org.apache.spark.scheduler.SchedulerBackend;
import org.apache.spark.scheduler.TaskScheduler;
import org.apache.spark.scheduler.TaskSchedulerImpl;
import org.apache.spark.scheduler.cluster.StandaloneSchedulerBackend;
import org.apache.spark.storage.BlockManagerId;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.collection.immutable.Set;

/**
 * Spark's push-based shuffle (Magnet) on a standalone cluster, for comparison. Spark has all of it, but offers it on
 * YARN only: its standalone shuffle service merges nothing, and its standalone scheduler names no hosts to push to.
 * This adds these two.
 *
 * <pre>
 *  Magnet                                 runs the shuffle service of a host, with Spark's own merger
 *  spark.master=sparkmagnet://HOST:PORT   a standalone cluster, all of whose hosts are pushed to
 * </pre>
 *
 * Spark also asks for {@code spark.testing=true} where the master is not YARN.
 */
public final class Magnet implements ExternalClusterManager {
  private static final String SCHEME = "sparkmagnet://";

  public static void main(String[] args) throws InterruptedException {
    SparkConf conf = new SparkConf().set("spark.shuffle.service.enabled", "true");
    SecurityManager security = new SecurityManager(conf, Option.empty(), package$.MODULE$.AUTH_SECRET_FILE());
    new ExternalShuffleService(conf, security) {
      @Override
      public ExternalBlockHandler newShuffleBlockHandler(TransportConf transport) {
        try {
          return new ExternalBlockHandler(transport, null, new RemoteBlockPushResolver(transport, null));
        } catch (IOException e) {
          throw new IllegalStateException(e);
        }
      }
    }.start();
    Thread.currentThread().join();
  }

  @Override
  public boolean canCreate(String master) {
    return master.startsWith(SCHEME);
  }

  @Override
  public TaskScheduler createTaskScheduler(SparkContext context, String master) {
    return new TaskSchedulerImpl(context);
  }

  @Override
  public SchedulerBackend createSchedulerBackend(SparkContext context, String master, TaskScheduler scheduler) {
    String[] masters = {"spark://" + master.substring(SCHEME.length())};
    return new StandaloneSchedulerBackend((TaskSchedulerImpl) scheduler, context, masters) {
      @Override
      public Seq<BlockManagerId> getShufflePushMergerLocations(int partitions, int profile) {
        return context.env().blockManager().master().getShufflePushMergerLocations(partitions, noHosts());
      }
    };
  }

  private static Set<String> noHosts() {
    return scala.collection.immutable.Set$.MODULE$.empty();
  }

  @Override
  public void initialize(TaskScheduler scheduler, SchedulerBackend backend) {
    ((TaskSchedulerImpl) scheduler).initialize(backend);
  }
}
