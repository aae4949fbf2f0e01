package org.gristmill.core.home;

import java.io.File;

/** Where bytes lie: {@code offset} of a file. */
public record InFile(File file, long offset) {}
