package org.gristmill.core.home;

import java.io.File;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.gristmill.core.format.PartitionIndex;
import org.gristmill.core.format.Segment;

/**
 * The data manager at a home: takes parcels as they arrive and answers for partitions. Partition p lies on disk p mod
 * the number of disks; each disk is a {@link DiskStore} of its own. What a disk can no longer take goes to the next one
 * ({@link FileChain}).
 */
public final class PageStore implements AutoCloseable {
  /** Chooses the file for a shuffle on a disk; may create folders. */
  public interface FileChooser {
    File file(int disk, int shuffle) throws IOException;
  }

  /** Told of something that has failed with a shuffle. */
  public interface FailureListener {
    void failed(int shuffle, IOException cause);
  }

  private final DiskStore[] lanes;

  /**
   * @param lost told once when a shuffle can no longer be stored here (disks full, folders gone, thread ended, no
   *     answer)
   * @param moved told when what follows of a shuffle goes to the next disk
   * @param appendBytes about as much is written at a time
   * @param heldBytesMax memory for segments that are not written, all disks together
   * @param timeoutMs a disk fails if it writes nothing for this long while a thread waits for it
   */
  public PageStore(int disks, FileChooser files, FailureListener lost, FailureListener moved, int appendBytes, long heldBytesMax, long timeoutMs) {
    lanes = new DiskStore[disks];
    for (int d = 0; d < disks; d++) {
      int first = d;
      lanes[d] = new DiskStore(String.valueOf(d), shuffle -> new FileChain(
          further -> file(files, first, (first + further) % disks, shuffle), disks, cause -> moved.failed(shuffle, cause)),
          lost, appendBytes, heldBytesMax / disks, timeoutMs);
    }
  }

  /**
   * The file of a shuffle that begins on disk {@code first}. Where it goes on on another disk, that has a file of its
   * own beside it.
   */
  private static File file(FileChooser files, int first, int disk, int shuffle) throws IOException {
    File file = files.file(disk, shuffle);
    return disk == first ? file : new File(file.getParentFile(), "from" + first + "_" + file.getName());
  }

  /**
   * Takes the segments of a parcel, all of one shuffle, and keeps their arrays. Blocks while the disks are too slow.
   */
  public void receive(List<byte[]> segments) throws IOException, InterruptedException {
    Map<DiskStore, List<PartitionTail.Received>> ofDisk = new LinkedHashMap<>();
    for (byte[] segment : segments) {
      Segment.Header header = Segment.header(segment, 0, segment.length);
      ofDisk.computeIfAbsent(lane(header.partition()), d -> new ArrayList<>()).add(new PartitionTail.Received(segment, header));
    }
    for (Map.Entry<DiskStore, List<PartitionTail.Received>> disk : ofDisk.entrySet()) {
      disk.getKey().receive(disk.getValue());
    }
  }

  /** The segments received for a partition; an exception if the shuffle cannot be stored here. */
  public PartitionIndex index(int shuffle, int partition) throws IOException {
    return lane(partition).index(shuffle, partition);
  }

  /** {@code length} bytes that the partition's index names, from memory or from the file. */
  public byte[] read(int shuffle, int partition, long offset, int length) throws IOException {
    return lane(partition).read(shuffle, offset, length);
  }

  /** The file that has these bytes; null while some are in memory, and if they are in several files. */
  public InFile file(int shuffle, int partition, long offset, int length) throws IOException {
    return lane(partition).file(shuffle, offset, length);
  }

  /** The length of the largest segment on the partition's disk: a reader need not ask for more bytes at a time. */
  public int largestSegment(int shuffle, int partition) throws IOException {
    return lane(partition).largestSegment(shuffle);
  }

  public void remove(int shuffle) throws IOException {
    for (DiskStore lane : lanes) {
      lane.remove(shuffle);
    }
  }

  @Override
  public void close() {
    for (DiskStore lane : lanes) {
      lane.close();
    }
  }

  private DiskStore lane(int partition) {
    return lanes[partition % lanes.length];
  }
}
