package org.gristmill.core.format;

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.IOException;
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

/** Reads fields of messages. Refuses counts and numbers that cannot be, before room is made for them. */
final class MessageInput extends DataInputStream {
  MessageInput(byte[] bytes) {
    super(new ByteArrayInputStream(bytes));
  }

  /** Reads a field of a type as {@link MessageOutput#writeField} writes it. */
  Object readField(Class<?> type) throws IOException {
    if (type == String.class) {
      return readUTF();
    } else if (type == int.class) {
      return readInt();
    } else if (type == long.class) {
      return readLong();
    } else if (type == boolean.class) {
      return readBoolean();
    } else if (type == long[].class) {
      return readSizes();
    } else if (type == Emission.class) {
      return readEmission();
    } else if (type == Digest.class) {
      return readDigest();
    } else if (type == PlanUpdate.class) {
      return readPlaced();
    } else if (type == Location.class) {
      return readLocation();
    } else if (type == Map.class) {
      return readWinners();
    }
    throw new AssertionError("no message may have a field of " + type);
  }

  private Map<Integer, Long> readWinners() throws IOException {
    Map<Integer, Long> winners = new LinkedHashMap<>();
    for (int n = readLength(); n > 0; n--) {
      winners.put(readNumber(), readLong());
    }
    return winners;
  }

  private Emission readEmission() throws IOException {
    return new Emission(readBoolean(), readBits(), readLong());
  }

  private BitSet readBits() throws IOException {
    return BitSet.valueOf(readNBytes(readLength()));
  }

  private PlanUpdate readPlaced() throws IOException {
    int shuffle = readInt();
    int epoch = readInt();
    List<Executor> executors = readExecutors();
    String[] homes = new String[readLength()];
    for (int p = 0; p < homes.length; p++) {
      homes[p] = executors.get(readNumber()).id();
    }
    String[] replicas = new String[homes.length];
    for (int p = 0; p < replicas.length; p++) {
      int executor = readNumber();
      replicas[p] = executor == 0 ? "" : executors.get(executor - 1).id();
    }
    return new PlanUpdate(new Plan(shuffle, epoch, homes, replicas), executors, readBits(), readUTF());
  }

  private List<Executor> readExecutors() throws IOException {
    List<Executor> executors = new ArrayList<>();
    for (int n = readLength(); n > 0; n--) {
      executors.add(new Executor(readUTF(), readUTF(), readInt()));
    }
    return executors;
  }

  private Location readLocation() throws IOException {
    int epoch = readInt();
    List<Executor> executors = readExecutors();
    List<Executor> homes = new ArrayList<>();
    for (int n = readLength(); n > 0; n--) {
      homes.add(executors.get(readNumber()));
    }
    return new Location(epoch, homes, readBoolean() ? readLineage() : null);
  }

  private Lineage readLineage() throws IOException {
    long version = readCount();
    List<BitSet> sets = new ArrayList<>();
    for (int n = readLength(); n > 0; n--) {
      sets.add(readBits());
    }
    Map<Long, Emission> partial = new HashMap<>();
    for (int n = readLength(); n > 0; n--) {
      long attempt = readCount();
      partial.put(attempt, new Emission(false, sets.get(readNumber()), readCount() - 1));
    }
    return new Lineage(version, partial);
  }

  private Digest readDigest() throws IOException {
    long records = readLong();
    long keys = readLong();
    long values = readLong();
    long rows = readLong();
    boolean positional = readBoolean();
    List<Digest.Column> columns = new ArrayList<>();
    for (int n = readLength(); n > 0; n--) {
      columns.add(new Digest.Column(readLong(), readLong(), readDouble(), readDouble(), readDouble()));
    }
    return new Digest(records, keys, values, rows, positional, columns);
  }

  private long[] readSizes() throws IOException {
    long[] sizes = new long[readLength()];
    for (int i = 0; i < sizes.length; i++) {
      sizes[i] = readCount();
    }
    return sizes;
  }

  /**
   * How many of something follow. Each takes a byte at least, so more than there are bytes is refused before room is
   * made for them.
   */
  private int readLength() throws IOException {
    long length = readCount();
    if (length > available()) {
      throw new IOException("it declares " + length + " of something in " + available() + " bytes");
    }
    return (int) length;
  }

  private int readNumber() throws IOException {
    long value = readCount();
    if (value > Integer.MAX_VALUE) {
      throw new IOException(value + " where a number of 31 bits is expected");
    }
    return (int) value;
  }

  private long readCount() throws IOException {
    long value = 0;
    for (int shift = 0; shift < Long.SIZE - 1; shift += 7) {
      int b = readUnsignedByte();
      value |= (long) (b & 0x7f) << shift;
      if (b < 0x80) {
        return value;
      }
    }
    throw new IOException("a number of more than 63 bits");
  }
}
