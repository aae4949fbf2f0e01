package org.apache.spark.shuffle.gristmill;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.spark.storage.BlockManager;
import org.gristmill.core.PageStore;

/** Puts store files into a folder of ours in each of Spark's local folders, so that Spark deletes them with the executor. */
final class StoreFiles implements PageStore.FileChooser {
  static final String FOLDER = "gristmill";

  private final File[] disks;
  private final String ending;

  /** @param ending of the files' names */
  StoreFiles(BlockManager blocks, String ending) {
    disks = blocks.diskBlockManager().localDirs();
    this.ending = ending;
  }

  @Override
  public File file(int disk, int shuffle) throws IOException {
    Path folder = Files.createDirectories(disks[disk].toPath().resolve(FOLDER));
    return folder.resolve(shuffle + "_" + disk + ending).toFile();
  }
}
