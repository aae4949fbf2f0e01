package org.gristmill.core.format;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.gristmill.core.plan.Emission;
import org.gristmill.core.plan.Executor;
import org.gristmill.core.plan.Lineage;
import org.gristmill.core.plan.Location;
import org.gristmill.core.plan.Plan;
import org.gristmill.core.plan.PlanUpdate;

/**
 * What driver and executors say to each other. They travel as byte arrays, because an executor's RPC layer is older than the
 * jars that {@code --jars} adds and could not load classes of ours.
 *
 * <p>A message is its kind (one byte) and its fields in the order of the record; counts and sizes are variable-length
 * integers, 7 bits per byte, low bits first.
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

  /** Executor to driver: pages must leave, where to? Answered by {@link Planned}; by {@link Done}, true: no plan yet, false: no shuffle. */
  record PlanRequest(int shuffle) implements Message {}

  /** Driver to executor, asked or when a plan is made or changes: the plan, and what to send again. */
  record Planned(PlanUpdate update) implements Message {}

  /**
   * Executor to driver: a task attempt begins to read, where do these partitions live? Answered by {@link Located}; by {@link Done}, false,
   * if the map statuses that it has may be of outputs that were replaced.
   *
   * @param lineage the version of the shuffle's lineage that the executor has; the answer names none if that is the newest
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

  /** Executor to driver, and driver to executors: send all pages of the shuffle, answer {@link Done} when they have arrived. */
  record Flush(int shuffle) implements Message {}

  /** {@code ok} is false if something could not be delivered. */
  record Done(boolean ok) implements Message {}

  /** Executor to driver: winners (attempt by map index) are incomplete in a partition; {@code home} empty if it was reached. */
  record Missing(int shuffle, int partition, Map<Integer, Long> winners, String home, String reason) implements Message {}

  /** Executor to driver: a task attempt has read the shuffle; answered by {@link Done}, false if what it read was replaced meanwhile. */
  record ReadingEnds(int shuffle, long attempt) implements Message {}

  /** Executor to driver: I cannot hold partitions of this shuffle any more. */
  record StoreFailed(int shuffle, String executor, String reason) implements Message {}

  /** Executor to driver: I am being decommissioned; answered by {@link Done} when my partitions have new homes that have received them. */
  record Leaving(String executor) implements Message {}

  /** Executor to driver: this home takes no parcels any more, because it is being decommissioned; answered by {@link Done} at once. */
  record Refused(String home) implements Message {}

  static byte[] encode(Message message) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try {
      write(message, new DataOutputStream(bytes));
    } catch (IOException e) {
      throw new UncheckedIOException(e); // a byte array does not fail
    }
    return bytes.toByteArray();
  }

  private static void write(Message message, DataOutputStream out) throws IOException {
    if (message instanceof Register m) {
      out.writeByte(1);
      out.writeUTF(m.executor);
      out.writeUTF(m.host);
      out.writeInt(m.port);
    } else if (message instanceof Start m) {
      out.writeByte(2);
      out.writeInt(m.shuffle);
      out.writeInt(m.mapIndex);
      out.writeLong(m.attempt);
      out.writeUTF(m.executor);
    } else if (message instanceof Begin m) {
      out.writeByte(3);
      writeEmission(m.emission, out);
    } else if (message instanceof Commit m) {
      out.writeByte(4);
      out.writeInt(m.shuffle);
      out.writeLong(m.attempt);
      out.writeLong(m.records);
      out.writeLong(m.millis);
      writeSizes(m.sizes, out);
      writeDigest(m.digest, out);
    } else if (message instanceof Committed m) {
      out.writeByte(5);
      out.writeBoolean(m.accepted);
      out.writeUTF(m.executor);
      out.writeUTF(m.host);
      out.writeInt(m.port);
      writeSizes(m.sizes, out);
      out.writeLong(m.rows);
    } else if (message instanceof PlanRequest m) {
      out.writeByte(6);
      out.writeInt(m.shuffle);
    } else if (message instanceof Planned m) {
      out.writeByte(7);
      writePlaced(m.update, out);
    } else if (message instanceof Locate m) {
      out.writeByte(8);
      out.writeInt(m.shuffle);
      out.writeInt(m.start);
      out.writeInt(m.end);
      out.writeLong(m.attempt);
      out.writeInt(m.stage);
      out.writeLong(m.statusesFrom);
      writeCount(m.lineage, out);
    } else if (message instanceof Located m) {
      out.writeByte(9);
      writeLocation(m.location, out);
    } else if (message instanceof Flush m) {
      out.writeByte(10);
      out.writeInt(m.shuffle);
    } else if (message instanceof Done m) {
      out.writeByte(11);
      out.writeBoolean(m.ok);
    } else if (message instanceof Missing m) {
      out.writeByte(12);
      out.writeInt(m.shuffle);
      out.writeInt(m.partition);
      writeCount(m.winners.size(), out);
      for (Map.Entry<Integer, Long> e : m.winners.entrySet()) {
        writeCount(e.getKey(), out);
        out.writeLong(e.getValue());
      }
      out.writeUTF(m.home);
      out.writeUTF(m.reason);
    } else if (message instanceof StoreFailed m) {
      out.writeByte(13);
      out.writeInt(m.shuffle);
      out.writeUTF(m.executor);
      out.writeUTF(m.reason);
    } else if (message instanceof ReadingEnds m) {
      out.writeByte(14);
      out.writeInt(m.shuffle);
      out.writeLong(m.attempt);
    } else if (message instanceof Leaving m) {
      out.writeByte(20);
      out.writeUTF(m.executor);
    } else if (message instanceof Refused m) {
      out.writeByte(21);
      out.writeUTF(m.home);
    }
  }

  static Message decode(byte[] bytes) {
    DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes));
    try {
      int kind = in.readByte();
      return switch (kind) {
        case 1 -> new Register(in.readUTF(), in.readUTF(), in.readInt());
        case 2 -> new Start(in.readInt(), in.readInt(), in.readLong(), in.readUTF());
        case 3 -> new Begin(readEmission(in));
        case 4 -> new Commit(in.readInt(), in.readLong(), in.readLong(), in.readLong(), readSizes(in),
            readDigest(in));
        case 5 -> new Committed(in.readBoolean(), in.readUTF(), in.readUTF(), in.readInt(), readSizes(in), in.readLong());
        case 6 -> new PlanRequest(in.readInt());
        case 7 -> new Planned(readPlaced(in));
        case 8 -> new Locate(in.readInt(), in.readInt(), in.readInt(), in.readLong(), in.readInt(), in.readLong(),
            readCount(in));
        case 9 -> new Located(readLocation(in));
        case 10 -> new Flush(in.readInt());
        case 11 -> new Done(in.readBoolean());
        case 12 -> readMissing(in);
        case 13 -> new StoreFailed(in.readInt(), in.readUTF(), in.readUTF());
        case 14 -> new ReadingEnds(in.readInt(), in.readLong());
        case 20 -> new Leaving(in.readUTF());
        case 21 -> new Refused(in.readUTF());
        default -> throw new IOException("message of unknown kind " + kind);
      };
    } catch (IOException e) {
      throw new UncheckedIOException("a message of " + bytes.length + " bytes cannot be read", e);
    } catch (IndexOutOfBoundsException e) { // an executor by its place in a list that has no such place
      throw new UncheckedIOException("a message of " + bytes.length + " bytes cannot be read", new IOException(e));
    }
  }

  private static Missing readMissing(DataInputStream in) throws IOException {
    int shuffle = in.readInt();
    int partition = in.readInt();
    Map<Integer, Long> winners = new LinkedHashMap<>();
    for (int n = readLength(in); n > 0; n--) {
      winners.put(readInt(in), in.readLong());
    }
    return new Missing(shuffle, partition, winners, in.readUTF(), in.readUTF());
  }

  private static void writeEmission(Emission emission, DataOutputStream out) throws IOException {
    out.writeBoolean(emission.all());
    writeBits(emission.partitions(), out);
    out.writeLong(emission.base());
  }

  private static Emission readEmission(DataInputStream in) throws IOException {
    return new Emission(in.readBoolean(), readBits(in), in.readLong());
  }

  private static void writeBits(BitSet bits, DataOutputStream out) throws IOException {
    byte[] bytes = bits.toByteArray();
    writeCount(bytes.length, out);
    out.write(bytes);
  }

  private static BitSet readBits(DataInputStream in) throws IOException {
    return BitSet.valueOf(in.readNBytes(readLength(in)));
  }

  private static void writePlaced(PlanUpdate placed, DataOutputStream out) throws IOException {
    Plan plan = placed.plan();
    out.writeInt(plan.shuffle());
    out.writeInt(plan.epoch());
    writeExecutors(placed.executors(), out);
    List<String> names = placed.executors().stream().map(Executor::id).toList();
    writeCount(plan.homes().length, out);
    for (String home : plan.homes()) {
      writeCount(names.indexOf(home), out);
    }
    for (String replica : plan.replicas()) {
      writeCount(names.indexOf(replica) + 1, out); // 0: none
    }
    writeBits(placed.refill(), out);
    out.writeUTF(placed.leaving());
  }

  private static PlanUpdate readPlaced(DataInputStream in) throws IOException {
    int shuffle = in.readInt();
    int epoch = in.readInt();
    List<Executor> executors = readExecutors(in);
    String[] homes = new String[readLength(in)];
    for (int p = 0; p < homes.length; p++) {
      homes[p] = executors.get(readInt(in)).id();
    }
    String[] replicas = new String[homes.length];
    for (int p = 0; p < replicas.length; p++) {
      int executor = readInt(in);
      replicas[p] = executor == 0 ? "" : executors.get(executor - 1).id();
    }
    return new PlanUpdate(new Plan(shuffle, epoch, homes, replicas), executors, readBits(in), in.readUTF());
  }

  /** Others then name an executor by its place in this list. */
  private static void writeExecutors(List<Executor> executors, DataOutputStream out) throws IOException {
    writeCount(executors.size(), out);
    for (Executor e : executors) {
      out.writeUTF(e.id());
      out.writeUTF(e.host());
      out.writeInt(e.port());
    }
  }

  private static List<Executor> readExecutors(DataInputStream in) throws IOException {
    List<Executor> executors = new ArrayList<>();
    for (int n = readLength(in); n > 0; n--) {
      executors.add(new Executor(in.readUTF(), in.readUTF(), in.readInt()));
    }
    return executors;
  }

  private static void writeLocation(Location location, DataOutputStream out) throws IOException {
    out.writeInt(location.epoch());
    List<Executor> executors = location.homes().stream().distinct().toList();
    writeExecutors(executors, out);
    writeCount(location.homes().size(), out);
    for (Executor e : location.homes()) {
      writeCount(executors.indexOf(e), out);
    }
    out.writeBoolean(location.lineage() != null);
    if (location.lineage() != null) {
      writeLineage(location.lineage(), out);
    }
  }

  /** Most attempts of a shuffle lack the same partitions, those of a lost executor: others name a set of them by its place in a list. */
  private static void writeLineage(Lineage lineage, DataOutputStream out) throws IOException {
    writeCount(lineage.version(), out);
    Map<BitSet, Integer> sets = new LinkedHashMap<>();
    lineage.partial().values().forEach(e -> sets.putIfAbsent(e.partitions(), sets.size()));
    writeCount(sets.size(), out);
    for (BitSet set : sets.keySet()) {
      writeBits(set, out);
    }
    writeCount(lineage.partial().size(), out);
    for (Map.Entry<Long, Emission> e : lineage.partial().entrySet()) {
      writeCount(e.getKey(), out);
      writeCount(sets.get(e.getValue().partitions()), out);
      writeCount(e.getValue().base() + 1, out); // 0: nobody
    }
  }

  private static Lineage readLineage(DataInputStream in) throws IOException {
    long version = readCount(in);
    List<BitSet> sets = new ArrayList<>();
    for (int n = readLength(in); n > 0; n--) {
      sets.add(readBits(in));
    }
    Map<Long, Emission> partial = new HashMap<>();
    for (int n = readLength(in); n > 0; n--) {
      long attempt = readCount(in);
      partial.put(attempt, new Emission(false, sets.get(readInt(in)), readCount(in) - 1));
    }
    return new Lineage(version, partial);
  }

  private static Location readLocation(DataInputStream in) throws IOException {
    int epoch = in.readInt();
    List<Executor> executors = readExecutors(in);
    List<Executor> homes = new ArrayList<>();
    for (int n = readLength(in); n > 0; n--) {
      homes.add(executors.get(readInt(in)));
    }
    return new Location(epoch, homes, in.readBoolean() ? readLineage(in) : null);
  }

  private static void writeDigest(Digest digest, DataOutputStream out) throws IOException {
    out.writeLong(digest.records());
    out.writeLong(digest.keys());
    out.writeLong(digest.values());
    out.writeLong(digest.rows());
    out.writeBoolean(digest.positional());
    writeCount(digest.columns().size(), out);
    for (Digest.Column c : digest.columns()) {
      out.writeLong(c.all());
      out.writeLong(c.placed());
      out.writeDouble(c.sum());
      out.writeDouble(c.weighted());
      out.writeDouble(c.magnitude());
    }
  }

  private static Digest readDigest(DataInputStream in) throws IOException {
    long records = in.readLong();
    long keys = in.readLong();
    long values = in.readLong();
    long rows = in.readLong();
    boolean positional = in.readBoolean();
    List<Digest.Column> columns = new ArrayList<>();
    for (int n = readLength(in); n > 0; n--) {
      columns.add(new Digest.Column(in.readLong(), in.readLong(), in.readDouble(), in.readDouble(), in.readDouble()));
    }
    return new Digest(records, keys, values, rows, positional, columns);
  }

  private static void writeSizes(long[] sizes, DataOutputStream out) throws IOException {
    writeCount(sizes.length, out);
    for (long size : sizes) {
      writeCount(size, out);
    }
  }

  private static long[] readSizes(DataInputStream in) throws IOException {
    long[] sizes = new long[readLength(in)];
    for (int i = 0; i < sizes.length; i++) {
      sizes[i] = readCount(in);
    }
    return sizes;
  }

  private static void writeCount(long value, DataOutputStream out) throws IOException {
    long rest = value;
    while (rest >= 0x80) {
      out.writeByte((int) (rest & 0x7f | 0x80));
      rest >>>= 7;
    }
    out.writeByte((int) rest);
  }

  /** How many of something follow. Each takes a byte at least, so more than there are bytes is refused before room is made for them. */
  private static int readLength(DataInputStream in) throws IOException {
    long length = readCount(in);
    if (length > in.available()) {
      throw new IOException("it declares " + length + " of something in " + in.available() + " bytes");
    }
    return (int) length;
  }

  private static int readInt(DataInputStream in) throws IOException {
    long value = readCount(in);
    if (value > Integer.MAX_VALUE) {
      throw new IOException(value + " where a number of 31 bits is expected");
    }
    return (int) value;
  }

  private static long readCount(DataInputStream in) throws IOException {
    long value = 0;
    for (int shift = 0; shift < Long.SIZE - 1; shift += 7) {
      int b = in.readUnsignedByte();
      value |= (long) (b & 0x7f) << shift;
      if (b < 0x80) {
        return value;
      }
    }
    throw new IOException("a number of more than 63 bits");
  }
}
