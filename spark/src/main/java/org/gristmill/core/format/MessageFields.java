package org.gristmill.core.format;

import java.io.DataInput;
import java.io.DataInputStream;
import java.io.DataOutput;
import java.io.DataOutputStream;
import java.io.IOException;
import java.lang.reflect.Constructor;
import java.lang.reflect.RecordComponent;
import java.util.ArrayList;
import java.util.Arrays;
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
 * Writes and reads messages: the kind, and the fields of the record in their order, each in the form of its type.
 * Counts and sizes are variable-length integers, 7 bits per byte, low bits first. Reading refuses counts and numbers
 * that cannot be, before room is made for them.
 */
final class MessageFields {
  private interface Writer<T> {
    void write(DataOutputStream out, T value) throws IOException;
  }

  private interface Reader<T> {
    T read(DataInputStream in) throws IOException;
  }

  private record Form<T>(Writer<T> writer, Reader<T> reader) {}

  /** The forms of fields; a field of another type is a record, and written as its fields. */
  private static final Map<Class<?>, Form<?>> FORMS = Map.ofEntries(
      Map.entry(String.class, new Form<String>(DataOutput::writeUTF, DataInput::readUTF)),
      Map.entry(int.class, new Form<Integer>(DataOutput::writeInt, DataInput::readInt)),
      Map.entry(long.class, new Form<Long>(DataOutput::writeLong, DataInput::readLong)),
      Map.entry(double.class, new Form<Double>(DataOutput::writeDouble, DataInput::readDouble)),
      Map.entry(boolean.class, new Form<Boolean>(DataOutput::writeBoolean, DataInput::readBoolean)),
      Map.entry(long[].class, new Form<long[]>(MessageFields::writeSizes, MessageFields::readSizes)),
      Map.entry(BitSet.class, new Form<BitSet>(MessageFields::writeBits, MessageFields::readBits)),
      Map.entry(Map.class, new Form<Map<Integer, Long>>(MessageFields::writeWinners, MessageFields::readWinners)),
      Map.entry(List.class, new Form<List<Digest.Column>>(MessageFields::writeList, in -> readList(in, Digest.Column.class))),
      Map.entry(PlanUpdate.class, new Form<PlanUpdate>(MessageFields::writeUpdate, MessageFields::readUpdate)),
      Map.entry(Location.class, new Form<Location>(MessageFields::writeLocation, MessageFields::readLocation)));

  /** The fields of a record, and the constructor that takes them. */
  private record Shape(RecordComponent[] fields, Constructor<?> constructor) {}

  private static final ClassValue<Shape> SHAPES = new ClassValue<>() {
    @Override
    protected Shape computeValue(Class<?> type) {
      RecordComponent[] fields = type.getRecordComponents();
      try {
        return new Shape(fields, type.getConstructor(Arrays.stream(fields).map(RecordComponent::getType).toArray(Class<?>[]::new)));
      } catch (NoSuchMethodException e) {
        throw new AssertionError(e); // every record has one with its fields
      }
    }
  };
  /** The kinds of messages. The byte that begins a message is the place of its kind here, from 1. */
  private static final List<Class<?>> KINDS = List.of(Message.Register.class, Message.Start.class, Message.Begin.class, Message.Commit.class,
      Message.Committed.class, Message.PlanRequest.class, Message.Planned.class, Message.Locate.class, Message.Located.class, Message.Flush.class,
      Message.Done.class, Message.Missing.class, Message.Corrupt.class, Message.StoreFailed.class, Message.ReadingEnds.class,
      Message.Leaving.class, Message.Refused.class);

  private MessageFields() {}

  static void write(Message message, DataOutputStream out) throws IOException {
    out.writeByte(KINDS.indexOf(message.getClass()) + 1);
    writeRecord(out, message);
  }

  static Message read(DataInputStream in) throws IOException {
    int kind = in.readUnsignedByte();
    if (kind < 1 || kind > KINDS.size()) {
      throw new IOException("message of unknown kind " + kind);
    }
    return (Message) readRecord(in, KINDS.get(kind - 1));
  }

  @SuppressWarnings("unchecked") // the form is that of the field's type
  private static void writeRecord(DataOutputStream out, Object record) throws IOException {
    for (RecordComponent field : SHAPES.get(record.getClass()).fields) {
      try {
        Object value = field.getAccessor().invoke(record);
        Form<Object> form = (Form<Object>) FORMS.get(field.getType());
        if (form != null) {
          form.writer.write(out, value);
        } else {
          writeRecord(out, value);
        }
      } catch (ReflectiveOperationException e) {
        throw new AssertionError(e); // the accessor of a public record
      }
    }
  }

  private static Object readRecord(DataInputStream in, Class<?> type) throws IOException {
    Shape shape = SHAPES.get(type);
    Object[] values = new Object[shape.fields.length];
    for (int i = 0; i < values.length; i++) {
      Class<?> field = shape.fields[i].getType();
      Form<?> form = FORMS.get(field);
      values[i] = form != null ? form.reader.read(in) : readRecord(in, field);
    }
    try {
      return shape.constructor.newInstance(values);
    } catch (ReflectiveOperationException e) {
      throw new AssertionError(e); // the constructor of a public record, which checks nothing
    }
  }

  private static void writeList(DataOutputStream out, List<?> records) throws IOException {
    writeCount(out, records.size());
    for (Object record : records) {
      writeRecord(out, record);
    }
  }

  private static <T> List<T> readList(DataInputStream in, Class<T> type) throws IOException {
    List<T> records = new ArrayList<>();
    for (int n = readLength(in); n > 0; n--) {
      records.add(type.cast(readRecord(in, type)));
    }
    return records;
  }

  private static void writeWinners(DataOutputStream out, Map<Integer, Long> winners) throws IOException {
    writeCount(out, winners.size());
    for (Map.Entry<Integer, Long> e : winners.entrySet()) {
      writeCount(out, e.getKey());
      out.writeLong(e.getValue());
    }
  }

  private static Map<Integer, Long> readWinners(DataInputStream in) throws IOException {
    Map<Integer, Long> winners = new LinkedHashMap<>();
    for (int n = readLength(in); n > 0; n--) {
      winners.put(readNumber(in), in.readLong());
    }
    return winners;
  }

  private static void writeBits(DataOutputStream out, BitSet bits) throws IOException {
    byte[] bytes = bits.toByteArray();
    writeCount(out, bytes.length);
    out.write(bytes);
  }

  private static BitSet readBits(DataInputStream in) throws IOException {
    return BitSet.valueOf(in.readNBytes(readLength(in)));
  }

  /** The homes of partitions are named by their places in the list of executors. */
  private static void writeUpdate(DataOutputStream out, PlanUpdate update) throws IOException {
    Plan plan = update.plan();
    out.writeInt(plan.shuffle());
    out.writeInt(plan.epoch());
    writeList(out, update.executors());
    List<String> names = update.executors().stream().map(Executor::id).toList();
    writeCount(out, plan.homes().length);
    for (String home : plan.homes()) {
      writeCount(out, names.indexOf(home));
    }
    for (String replica : plan.replicas()) {
      writeCount(out, names.indexOf(replica) + 1); // 0: none
    }
    writeBits(out, update.refill());
    out.writeUTF(update.leaving());
  }

  private static PlanUpdate readUpdate(DataInputStream in) throws IOException {
    int shuffle = in.readInt();
    int epoch = in.readInt();
    List<Executor> executors = readList(in, Executor.class);
    String[] homes = new String[readLength(in)];
    for (int p = 0; p < homes.length; p++) {
      homes[p] = executors.get(readNumber(in)).id();
    }
    String[] replicas = new String[homes.length];
    for (int p = 0; p < replicas.length; p++) {
      int executor = readNumber(in);
      replicas[p] = executor == 0 ? "" : executors.get(executor - 1).id();
    }
    return new PlanUpdate(new Plan(shuffle, epoch, homes, replicas), executors, readBits(in), in.readUTF());
  }

  private static void writeLocation(DataOutputStream out, Location location) throws IOException {
    out.writeInt(location.epoch());
    List<Executor> executors = location.homes().stream().distinct().toList();
    writeList(out, executors);
    writeCount(out, location.homes().size());
    for (Executor e : location.homes()) {
      writeCount(out, executors.indexOf(e));
    }
    out.writeBoolean(location.lineage() != null);
    if (location.lineage() != null) {
      writeLineage(out, location.lineage());
    }
  }

  private static Location readLocation(DataInputStream in) throws IOException {
    int epoch = in.readInt();
    List<Executor> executors = readList(in, Executor.class);
    List<Executor> homes = new ArrayList<>();
    for (int n = readLength(in); n > 0; n--) {
      homes.add(executors.get(readNumber(in)));
    }
    return new Location(epoch, homes, in.readBoolean() ? readLineage(in) : null);
  }

  /**
   * Most attempts of a shuffle lack the same partitions, those of a lost executor: others name a set of them by its
   * place in a list.
   */
  private static void writeLineage(DataOutputStream out, Lineage lineage) throws IOException {
    writeCount(out, lineage.version());
    Map<BitSet, Integer> sets = new LinkedHashMap<>();
    lineage.partial().values().forEach(e -> sets.putIfAbsent(e.partitions(), sets.size()));
    writeCount(out, sets.size());
    for (BitSet set : sets.keySet()) {
      writeBits(out, set);
    }
    writeCount(out, lineage.partial().size());
    for (Map.Entry<Long, Emission> e : lineage.partial().entrySet()) {
      writeCount(out, e.getKey());
      writeCount(out, sets.get(e.getValue().partitions()));
      writeCount(out, e.getValue().base() + 1); // 0: nobody
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
      partial.put(attempt, new Emission(false, sets.get(readNumber(in)), readCount(in) - 1));
    }
    return new Lineage(version, partial);
  }

  private static void writeSizes(DataOutputStream out, long[] sizes) throws IOException {
    writeCount(out, sizes.length);
    for (long size : sizes) {
      writeCount(out, size);
    }
  }

  private static long[] readSizes(DataInputStream in) throws IOException {
    long[] sizes = new long[readLength(in)];
    for (int i = 0; i < sizes.length; i++) {
      sizes[i] = readCount(in);
    }
    return sizes;
  }

  /**
   * How many of something follow. Each takes a byte at least, so more than there are bytes is refused before room is
   * made for them.
   */
  private static int readLength(DataInputStream in) throws IOException {
    long length = readCount(in);
    if (length > in.available()) {
      throw new IOException("it declares " + length + " of something in " + in.available() + " bytes");
    }
    return (int) length;
  }

  private static int readNumber(DataInputStream in) throws IOException {
    long value = readCount(in);
    if (value > Integer.MAX_VALUE) {
      throw new IOException(value + " where a number of 31 bits is expected");
    }
    return (int) value;
  }

  private static void writeCount(DataOutputStream out, long value) throws IOException {
    long rest = value;
    while (rest >= 0x80) {
      out.writeByte((int) (rest & 0x7f | 0x80));
      rest >>>= 7;
    }
    out.writeByte((int) rest);
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
