package org.gristmill.core.format;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Map;
import org.gristmill.core.plan.Emission;
import org.gristmill.core.plan.Lineage;
import org.gristmill.core.plan.Location;
import org.gristmill.core.plan.PlanUpdate;

/**
 * What driver and executors say to each other. They travel as byte arrays, because an executor's RPC layer is older
 * than the jars that {@code --jars} adds and could not load classes of ours.
 *
 * <p>A message is its kind (one byte) and its fields in the order of the record, each in the form of its type
 * ({@link MessageFields}).
 */
public sealed interface Message {
  /** Executor to driver: I can be a home. An endpoint reference travels with it. */
  record Register(String executor, String host, int port) implements Message {}

  /** Executor to driver: an attempt begins; answered by {@link Begin}. */
  record Start(int shuffle, int mapIndex, long attempt, String executor) implements Message {}

  /** Driver to executor: what the attempt must emit. */
  record Begin(Emission emission) implements Message {}

  /** Executor to driver: an attempt has written everything; answered by {@link Committed}. */
  record Commit(int shuffle, long attempt, long records, long millis, long[] sizes, Digest digest) implements Message {}

  /** Driver to executor: what the map status should say; {@code rows} is Spark's checksum of rows. */
  record Committed(boolean accepted, String executor, String host, int port, long[] sizes, long rows) implements Message {}

  /**
   * Executor to driver: pages must leave, where to? Answered by {@link Planned}; by {@link Done}, true: no plan yet,
   * false: no shuffle.
   */
  record PlanRequest(int shuffle) implements Message {}

  /** Driver to executor, asked or when a plan is made or changes: the plan, and what to send again. */
  record Planned(PlanUpdate update) implements Message {}

  /**
   * Executor to driver: a task attempt begins to read, where do these partitions live? Answered by {@link Located}; by
   * {@link Done}, false, if the map statuses that it has may be of outputs that were replaced.
   *
   * @param lineage the version of the shuffle's lineage that the executor has; the answer names none if that is the
   *     newest
   */
  record Locate(int shuffle, int start, int end, long attempt, int stage, long statusesFrom, long lineage) implements Message {
    public Locate(int shuffle, int start, int end, long attempt, int stage, long statusesFrom) {
      this(shuffle, start, end, attempt, stage, statusesFrom, 0);
    }

    public Locate knowing(Lineage known) {
      return new Locate(shuffle, start, end, attempt, stage, statusesFrom, known.version());
    }
  }

  record Located(Location location) implements Message {}

  /**
   * Executor to driver, and driver to executors: send all pages of the shuffle, answer {@link Done} when they have
   * arrived.
   */
  record Flush(int shuffle) implements Message {}

  /** {@code ok} is false if something could not be delivered. */
  record Done(boolean ok) implements Message {}

  /**
   * Executor to driver: winners (attempt by map index) are incomplete in a partition; {@code home} empty if it was
   * reached.
   */
  record Missing(int shuffle, int partition, Map<Integer, Long> winners, String home, String reason) implements Message {}

  /**
   * Executor to driver: the segment of {@code map} that {@code home} holds of a partition is corrupt; {@code winners}
   * are those of the partition.
   */
  record Corrupt(int shuffle, int partition, int map, Map<Integer, Long> winners, String home, String reason) implements Message {}

  /**
   * Executor to driver: a task attempt has read the shuffle; answered by {@link Done}, false if what it read was
   * replaced meanwhile.
   */
  record ReadingEnds(int shuffle, long attempt) implements Message {}

  /** Executor to driver: I cannot hold partitions of this shuffle any more. */
  record StoreFailed(int shuffle, String executor, String reason) implements Message {}

  /**
   * Executor to driver: I am being decommissioned; answered by {@link Done} when my partitions have new homes that have
   * received them.
   */
  record Leaving(String executor) implements Message {}

  /**
   * Executor to driver: this home takes no parcels any more, because it is being decommissioned; answered by
   * {@link Done} at once.
   */
  record Refused(String home) implements Message {}

  static byte[] encode(Message message) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try {
      MessageFields.write(message, new DataOutputStream(bytes));
    } catch (IOException e) {
      throw new UncheckedIOException(e); // a byte array does not fail
    }
    return bytes.toByteArray();
  }

  static Message decode(byte[] bytes) {
    try {
      return MessageFields.read(new DataInputStream(new ByteArrayInputStream(bytes)));
    } catch (IOException | IndexOutOfBoundsException e) { // an executor by its place in a list that has no such place
      throw new UncheckedIOException("a message of " + bytes.length + " bytes cannot be read",
          e instanceof IOException io ? io : new IOException(e));
    }
  }
}
