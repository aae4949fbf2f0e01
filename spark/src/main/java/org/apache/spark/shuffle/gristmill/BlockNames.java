package org.apache.spark.shuffle.gristmill;

import org.apache.spark.storage.BlockId;
import org.apache.spark.storage.ShuffleBlockId;
import org.apache.spark.storage.ShuffleDataBlockId;
import org.gristmill.core.format.PartitionIndex;

/**
 * How what we move is named in Spark's block transfer, which only knows shuffle blocks by (shuffle, map id, reduce id).
 * Bit 62 of the map id marks a name of ours; task attempt ids, which the stock shuffle puts there, never reach it.
 *
 * <pre>
 *  a range of a partition's file: ShuffleBlockId(shuffle, mark | partition << 40 | offset, length); length 0: its index
 *  a parcel on its way to a home: ShuffleDataBlockId(shuffle, mark | number, bytes)
 * </pre>
 */
final class BlockNames {
  private static final long MARK = 1L << 62;
  private static final int OFFSET_BITS = 40;
  private static final long OFFSET_MASK = PartitionIndex.OFFSET_MAX;

  private BlockNames() {}

  static String range(int shuffle, int partition, long offset, int length) {
    if (offset > OFFSET_MASK) {
      throw new IllegalStateException("a store file has grown past " + OFFSET_MASK + " bytes");
    }
    return new ShuffleBlockId(shuffle, MARK | (long) partition << OFFSET_BITS | offset, length).name();
  }

  static String index(int shuffle, int partition) {
    return range(shuffle, partition, 0, 0);
  }

  static ShuffleDataBlockId parcel(int shuffle, long number, int bytes) {
    return new ShuffleDataBlockId(shuffle, MARK | number, bytes);
  }

  static boolean isOurs(BlockId id) {
    return id instanceof ShuffleBlockId block && (block.mapId() & MARK) != 0
        || id instanceof ShuffleDataBlockId data && (data.mapId() & MARK) != 0;
  }

  static int partition(ShuffleBlockId id) {
    return (int) ((id.mapId() & ~MARK) >>> OFFSET_BITS);
  }

  static long offset(ShuffleBlockId id) {
    return id.mapId() & OFFSET_MASK;
  }
}
