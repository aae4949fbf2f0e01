package org.gristmill.core.format;

import java.io.DataOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.util.BitSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.gristmill.core.plan.Emission;
import org.gristmill.core.plan.Executor;
import org.gristmill.core.plan.Lineage;
import org.gristmill.core.plan.Location;
import org.gristmill.core.plan.Plan;
import org.gristmill.core.plan.PlanUpdate;

/** Writes fields of messages. Counts and sizes are variable-length integers, 7 bits per byte, low bits first. */
final class MessageOutput extends DataOutputStream {
  MessageOutput(OutputStream out) {
    super(out);
  }

  /** Writes a field as {@link MessageInput#readField} reads it. */
  void writeField(Object value) throws IOException {
    if (value instanceof String text) {
      writeUTF(text);
    } else if (value instanceof Integer number) {
      writeInt(number);
    } else if (value instanceof Long number) {
      writeLong(number);
    } else if (value instanceof Boolean truth) {
      writeBoolean(truth);
    } else if (value instanceof long[] sizes) {
      writeSizes(sizes);
    } else if (value instanceof Emission emission) {
      writeEmission(emission);
    } else if (value instanceof Digest digest) {
      writeDigest(digest);
    } else if (value instanceof PlanUpdate update) {
      writePlaced(update);
    } else if (value instanceof Location location) {
      writeLocation(location);
    } else if (value instanceof Map<?, ?> winners) {
      writeWinners(winners);
    } else {
      throw new AssertionError("no message may have a field such as " + value);
    }
  }

  private void writeWinners(Map<?, ?> winners) throws IOException {
    writeCount(winners.size());
    for (Map.Entry<?, ?> e : winners.entrySet()) {
      writeCount((Integer) e.getKey());
      writeLong((Long) e.getValue());
    }
  }

  private void writeEmission(Emission emission) throws IOException {
    writeBoolean(emission.all());
    writeBits(emission.partitions());
    writeLong(emission.base());
  }

  private void writeBits(BitSet bits) throws IOException {
    byte[] bytes = bits.toByteArray();
    writeCount(bytes.length);
    write(bytes);
  }

  private void writePlaced(PlanUpdate placed) throws IOException {
    Plan plan = placed.plan();
    writeInt(plan.shuffle());
    writeInt(plan.epoch());
    writeExecutors(placed.executors());
    List<String> names = placed.executors().stream().map(Executor::id).toList();
    writeCount(plan.homes().length);
    for (String home : plan.homes()) {
      writeCount(names.indexOf(home));
    }
    for (String replica : plan.replicas()) {
      writeCount(names.indexOf(replica) + 1); // 0: none
    }
    writeBits(placed.refill());
    writeUTF(placed.leaving());
  }

  /** Others then name an executor by its place in this list. */
  private void writeExecutors(List<Executor> executors) throws IOException {
    writeCount(executors.size());
    for (Executor e : executors) {
      writeUTF(e.id());
      writeUTF(e.host());
      writeInt(e.port());
    }
  }

  private void writeLocation(Location location) throws IOException {
    writeInt(location.epoch());
    List<Executor> executors = location.homes().stream().distinct().toList();
    writeExecutors(executors);
    writeCount(location.homes().size());
    for (Executor e : location.homes()) {
      writeCount(executors.indexOf(e));
    }
    writeBoolean(location.lineage() != null);
    if (location.lineage() != null) {
      writeLineage(location.lineage());
    }
  }

  /**
   * Most attempts of a shuffle lack the same partitions, those of a lost executor: others name a set of them by its
   * place in a list.
   */
  private void writeLineage(Lineage lineage) throws IOException {
    writeCount(lineage.version());
    Map<BitSet, Integer> sets = new LinkedHashMap<>();
    lineage.partial().values().forEach(e -> sets.putIfAbsent(e.partitions(), sets.size()));
    writeCount(sets.size());
    for (BitSet set : sets.keySet()) {
      writeBits(set);
    }
    writeCount(lineage.partial().size());
    for (Map.Entry<Long, Emission> e : lineage.partial().entrySet()) {
      writeCount(e.getKey());
      writeCount(sets.get(e.getValue().partitions()));
      writeCount(e.getValue().base() + 1); // 0: nobody
    }
  }

  private void writeDigest(Digest digest) throws IOException {
    writeLong(digest.records());
    writeLong(digest.keys());
    writeLong(digest.values());
    writeLong(digest.rows());
    writeBoolean(digest.positional());
    writeCount(digest.columns().size());
    for (Digest.Column c : digest.columns()) {
      writeLong(c.all());
      writeLong(c.placed());
      writeDouble(c.sum());
      writeDouble(c.weighted());
      writeDouble(c.magnitude());
    }
  }

  private void writeSizes(long[] sizes) throws IOException {
    writeCount(sizes.length);
    for (long size : sizes) {
      writeCount(size);
    }
  }

  private void writeCount(long value) throws IOException {
    long rest = value;
    while (rest >= 0x80) {
      writeByte((int) (rest & 0x7f | 0x80));
      rest >>>= 7;
    }
    writeByte((int) rest);
  }
}
