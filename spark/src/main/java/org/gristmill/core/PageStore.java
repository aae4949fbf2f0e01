package org.gristmill.core;

import java.io.File;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/**
 * The data manager at a home: takes parcels as they arrive and answers for partitions. Partition p lies on disk p mod the
 * number of disks; each disk is a {@link StoreLane} of its own.
 */
public final class PageStore implements AutoCloseable {
  /** Chooses the file for a shuffle on a disk; may create folders. */
  public interface FileChooser {
    File file(int disk, int shuffle) throws IOException;
  }

  /** Told when a shuffle can no longer be stored here (disk full, folder gone). */
  public interface FailureListener {
    void storeFailed(int shuffle, IOException cause);
  }

  private final StoreLane[] lanes;

  /**
   * @param appendBytes size a partition's waiting segments should reach before they are appended
   * @param waitingBytesMax memory for waiting segments, all disks together
   */
  public PageStore(int disks, FileChooser files, FailureListener listener, int appendBytes, long waitingBytesMax) {
    lanes = new StoreLane[disks];
    for (int d = 0; d < disks; d++) {
      int disk = d;
      lanes[d] = new StoreLane(String.valueOf(d), shuffle -> files.file(disk, shuffle), listener::storeFailed, appendBytes,
          waitingBytesMax / disks);
    }
  }

  /** Takes a parcel: segments of one shuffle back to back. Blocks while the disks are behind. */
  public void receive(byte[] parcel) throws IOException, InterruptedException {
    List<List<Segment.Header>> headers = new ArrayList<>();
    List<List<Integer>> offsets = new ArrayList<>();
    for (int d = 0; d < lanes.length; d++) {
      headers.add(new ArrayList<>());
      offsets.add(new ArrayList<>());
    }
    int at = 0;
    int shuffle = 0;
    for (Segment.Header header : Segment.headers(parcel, 0, parcel.length)) {
      int disk = header.partition() % lanes.length;
      headers.get(disk).add(header);
      offsets.get(disk).add(at);
      at += header.segmentBytes();
      shuffle = header.shuffle();
    }
    for (int d = 0; d < lanes.length; d++) {
      if (!headers.get(d).isEmpty()) {
        lanes[d].receive(shuffle, parcel, headers.get(d), offsets.get(d));
      }
    }
  }

  /** What is stored for a partition, everything received so far included. */
  public PartitionIndex index(int shuffle, int partition) throws IOException, InterruptedException {
    return lane(partition).sealedIndex(shuffle, partition);
  }

  public void read(int shuffle, int partition, long offset, byte[] into, int length) throws IOException {
    lane(partition).file(shuffle).read(offset, into, length);
  }

  public File file(int shuffle, int partition) throws IOException {
    return lane(partition).file(shuffle).file();
  }

  public void remove(int shuffle) throws IOException {
    for (StoreLane lane : lanes) {
      lane.remove(shuffle);
    }
  }

  @Override
  public void close() {
    for (StoreLane lane : lanes) {
      lane.close();
    }
  }

  private StoreLane lane(int partition) {
    return lanes[partition % lanes.length];
  }
}
