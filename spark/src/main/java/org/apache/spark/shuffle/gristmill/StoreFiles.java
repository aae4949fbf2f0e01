package org.apache.spark.shuffle.gristmill;

import java.io.File;
import java.io.IOException;
import org.apache.spark.storage.BlockManager;
import org.apache.spark.storage.DiskBlockManager;
import org.gristmill.core.PageStore;

/** Puts store files into Spark's local folders, one folder per disk, so that Spark deletes them with the application. */
final class StoreFiles implements PageStore.FileChooser {
  private final DiskBlockManager disks;

  StoreFiles(BlockManager blocks) {
    disks = blocks.diskBlockManager();
  }

  /** Spark hashes a file's name to a folder: try names until it is the folder of the disk wanted. */
  @Override
  public File file(int disk, int shuffle) throws IOException {
    for (int salt = 0; ; salt++) {
      File file = disks.getFile("gristmill_" + shuffle + "_" + disk + "_" + salt + ".store");
      if (file.getParentFile().getParentFile().equals(disks.localDirs()[disk])) {
        return file;
      }
    }
  }
}
