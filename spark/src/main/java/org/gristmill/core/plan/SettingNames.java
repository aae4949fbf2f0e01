package org.gristmill.core.plan;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.TreeSet;
import java.util.stream.Stream;

/** Finds names that no setting has: what was set under them has no effect, and nothing else would say so. */
public final class SettingNames {
  private SettingNames() {}

  /** A sentence for each of these names, all with {@link Settings#PREFIX}, that has no effect. */
  public static List<String> withoutEffect(Collection<String> names) {
    List<String> sentences = new ArrayList<>();
    for (String name : new TreeSet<>(names)) {
      if (known().noneMatch(name::equals)) {
        String nearest = known().min(Comparator.comparingInt(other -> distance(name, other))).orElseThrow();
        sentences.add(name + " is not a setting of Gristmill and has no effect. Did you mean " + nearest + "?");
      }
    }
    for (Settings.Entry entry : Settings.ALL) {
      if (entry.former() != null && names.contains(entry.former()) && names.contains(entry.key())) {
        sentences.add(entry.former() + " has no effect, because " + entry.key() + ", its present name, is set too. Remove the former");
      }
    }
    return sentences;
  }

  private static Stream<String> known() {
    return Settings.ALL.stream().flatMap(entry -> Stream.of(entry.key(), entry.former()).filter(name -> name != null));
  }

  /** The least number of letters to insert, delete or replace. */
  private static int distance(String a, String b) {
    int[] row = new int[b.length() + 1];
    for (int j = 0; j < row.length; j++) {
      row[j] = j;
    }
    for (int i = 1; i <= a.length(); i++) {
      int diagonal = row[0];
      row[0] = i;
      for (int j = 1; j < row.length; j++) {
        int replaced = diagonal + (a.charAt(i - 1) == b.charAt(j - 1) ? 0 : 1);
        diagonal = row[j];
        row[j] = Math.min(replaced, 1 + Math.min(row[j], row[j - 1]));
      }
    }
    return row[b.length()];
  }
}
