package org.gristmill;

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * What a class file refers to, from its constant pool (chapter 4.4 of the Java Virtual Machine Specification).
 *
 * @param classes all classes that are named, also in signatures, as {@code org.example.Name}
 * @param members the names of the methods and fields that are used, by class
 */
record ClassFile(Set<String> classes, Map<String, Set<String>> members) {
  private static final Pattern IN_SIGNATURE = Pattern.compile("L(org/[\\w/$]+)[;<]");

  static ClassFile of(byte[] bytes) throws IOException {
    DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes));
    in.readLong(); // magic number and version
    int count = in.readUnsignedShort();
    String[] texts = new String[count];
    int[][] pairs = new int[count][];
    int[] tags = new int[count];
    for (int i = 1; i < count; i++) {
      tags[i] = in.readUnsignedByte();
      switch (tags[i]) {
        case 1 -> texts[i] = in.readUTF();
        case 3, 4 -> in.readInt();
        case 5, 6 -> {
          in.readLong();
          i++; // it takes two places
        }
        case 7, 8, 16, 19, 20 -> pairs[i] = new int[] {in.readUnsignedShort(), 0};
        case 9, 10, 11, 12, 17, 18 -> pairs[i] = new int[] {in.readUnsignedShort(), in.readUnsignedShort()};
        case 15 -> in.skipNBytes(3);
        default -> throw new IOException("constant of unknown kind " + tags[i]);
      }
    }
    ClassFile file = new ClassFile(new TreeSet<>(), new TreeMap<>());
    for (int i = 1; i < count; i++) {
      if (tags[i] == 7 && !texts[pairs[i][0]].startsWith("[")) {
        file.classes.add(name(texts[pairs[i][0]]));
      } else if (tags[i] >= 9 && tags[i] <= 11) {
        String owner = name(texts[pairs[pairs[i][0]][0]]);
        file.members.computeIfAbsent(owner, k -> new TreeSet<>()).add(texts[pairs[pairs[i][1]][0]]);
      } else if (tags[i] == 1) {
        for (Matcher m = IN_SIGNATURE.matcher(texts[i]); m.find();) {
          file.classes.add(name(m.group(1)));
        }
      }
    }
    return file;
  }

  private static String name(String internal) {
    return internal.replace('/', '.');
  }
}
