package org.gristmill.core.plan;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;

class SettingsTest {
  private static Settings with(Settings.Entry entry, String value) {
    return new Settings(e -> Map.of(entry.key(), value).get(e.key()));
  }

  /** Run with -Dgristmill.writeDocs=true to write it anew. */
  @Test
  void theTableInTheDocumentationIsTheOneOfTheCode() throws IOException {
    Path docs = Path.of("docs/settings.md");
    String wanted = "# Settings\n\nMade from `Settings.java`; a test fails if it is stale.\n\n" + Settings.table();
    if (Boolean.getBoolean("gristmill.writeDocs")) {
      Files.createDirectories(docs.getParent());
      Files.writeString(docs, wanted);
    }
    assertEquals(wanted, Files.readString(docs));
  }

  @Test
  void everyDefaultIsValid() {
    Settings defaults = new Settings(e -> null);
    for (Settings.Entry e : Settings.ALL) {
      switch (e.unit()) {
        case "bytes", "count", "ms" -> assertTrue(defaults.number(e) >= 0, e.key());
        case "share" -> assertTrue(defaults.share(e) <= 1, e.key());
        case "true or false" -> assertTrue(defaults.flag(e), e.key());
        default -> assertEquals(e.defaultValue(), defaults.word(e), e.key());
      }
    }
  }

  @Test
  void bytesHaveSuffixes() {
    assertEquals(3 << 20, with(Settings.PAGE_BYTES, "3m").number(Settings.PAGE_BYTES));
    assertEquals(2L << 30, with(Settings.POOL_BYTES, "2G").number(Settings.POOL_BYTES));
    assertEquals(512, with(Settings.PAGE_BYTES, "512").size(Settings.PAGE_BYTES));
  }

  @Test
  void aBadValueIsNamedWithWhatIsAllowed() {
    for (String bad : new String[] {"", "x", "-1", "1.5", "99999999999999999999", "9999999999g"}) {
      var e = assertThrows(IllegalArgumentException.class, () -> with(Settings.POOL_BYTES, bad).number(Settings.POOL_BYTES));
      assertTrue(e.getMessage().contains("spark.gristmill.pool.bytes"), e.getMessage());
    }
    assertThrows(IllegalArgumentException.class, () -> with(Settings.THRESHOLD, "1.1").share(Settings.THRESHOLD));
    assertThrows(IllegalArgumentException.class, () -> with(Settings.FALLBACK, "yes").flag(Settings.FALLBACK));
    assertEquals("replicate", with(Settings.RECOVERY, "replicate").word(Settings.RECOVERY));
    assertThrows(IllegalArgumentException.class, () -> with(Settings.RECOVERY, "pray").word(Settings.RECOVERY));
    assertThrows(IllegalArgumentException.class, () -> with(Settings.PAGE_BYTES, "2g").size(Settings.PAGE_BYTES));
  }
}
