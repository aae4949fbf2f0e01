package org.apache.spark.shuffle.gristmill;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.IntStream;
import org.apache.spark.storage.BlockManager;
import org.apache.spark.storage.DiskBlockManager;
import org.gristmill.core.home.PageStore;

/**
 * Puts store files into a folder of ours on each of Spark's disks. It is one of the files that Spark knows there, so
 * that Spark deletes it with the executor.
 */
final class StoreFiles implements PageStore.FileChooser {
  private final Path[] folders;
  private final String ending;

  /** @param ending of the files' names */
  StoreFiles(BlockManager blocks, String ending) {
    DiskBlockManager disks = blocks.diskBlockManager();
    folders = IntStream.range(0, disks.localDirs().length).mapToObj(disk -> folder(disks, disk)).toArray(Path[]::new);
    this.ending = ending;
  }

  /** Spark hashes a file's name to a disk: try names until it is the one wanted. */
  private static Path folder(DiskBlockManager disks, int disk) {
    for (int salt = 0;; salt++) {
      File folder = disks.getFile("gristmill_" + salt);
      if (folder.getParentFile().getParentFile().equals(disks.localDirs()[disk])) {
        return folder.toPath();
      }
    }
  }

  @Override
  public File file(int disk, int shuffle) throws IOException {
    return Files.createDirectories(folders[disk]).resolve(shuffle + "_" + disk + ending).toFile();
  }
}
