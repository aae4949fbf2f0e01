package org.gristmill.core.plan;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class SettingsTest {
  private static Settings with(Settings.Entry entry, String value) {
    return new Settings(Map.of(entry.key(), value)::get);
  }

  /** Run with -Dgristmill.writeDocs=true to write it anew. */
  @Test
  void theTableInTheDocumentationIsTheOneOfTheCode() throws IOException {
    Path docs = Path.of("docs/settings.md");
    String wanted = """
        # Settings

        Made from `Settings.java`; a test fails if it is stale.

        Set them before Spark starts, as `--conf` or in `SparkSession.builder.config`. Sizes and times are written as Spark's are: `512k`, `64m` or `64mb`, `2g`;
        `500ms`, `10s`, `5m`. A plain number counts the unit in the table. The application does not start with a value that cannot be, and the error names all
        of them. A name that no setting has is warned of in the driver's log, with the nearest one.

        """
        + table();
    if (Boolean.getBoolean("gristmill.writeDocs")) {
      Files.createDirectories(docs.getParent());
      Files.writeString(docs, wanted);
    }
    assertEquals(wanted, Files.readString(docs));
  }

  /** The table of the documentation, in Markdown. */
  private static String table() {
    StringBuilder table = new StringBuilder("| setting | default | least | most | unit | meaning |\n| --- | --- | --- | --- | --- | --- |\n");
    for (Settings.Entry e : Settings.ALL) {
      table.append("| `").append(e.key()).append("` | `").append(e.defaultValue()).append("` | ")
          .append(e.least() == null ? "" : (e.defaultValue().equals("0") && !e.least().equals("0") ? "0 or " : "") + "`" + e.least() + "`")
          .append(" | ")
          .append(e.most() == null ? "" : "`" + e.most() + "`").append(" | ").append(e.unit()).append(" | ").append(e.doc())
          .append(e.former() == null ? "" : " The former name `" + e.former() + "` is still read.").append(" |\n");
    }
    return table.toString();
  }

  @Test
  void everyDefaultIsValid() {
    Settings defaults = new Settings(key -> null);
    defaults.check();
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
  void sizesAndTimesAreWrittenAsSparkWritesThem() {
    for (String size : List.of("3m", "3mb", "3M", " 3072k ", "3072KB", "3145728", "3145728b")) {
      assertEquals(3 << 20, with(Settings.PAGE_BYTES, size).size(Settings.PAGE_BYTES), size);
    }
    assertEquals(2L << 30, with(Settings.POOL_BYTES, "2G").number(Settings.POOL_BYTES));
    assertEquals(2L << 40, with(Settings.POOL_BYTES, "2tb").number(Settings.POOL_BYTES));
    for (String time : List.of("120s", "120000", "120000ms", "2m", "2min")) {
      assertEquals(120_000, with(Settings.TIMEOUT, time).number(Settings.TIMEOUT), time);
    }
    assertEquals(5L * 3600_000, with(Settings.TIMEOUT, "5h").number(Settings.TIMEOUT));
    assertEquals(5L * 24 * 3600_000, with(Settings.TIMEOUT, "5d").number(Settings.TIMEOUT));
  }

  /**
   * {@code spark.gristmill.window.bytes=0} ended the job after four attempts of a stage; others sent nothing, or
   * nothing but empty parcels.
   */
  @Test
  void zeroIsRefusedAtTheStartWhereItMakesNoSense() {
    for (String name : List.of("window.bytes", "page.bytes", "segment.bytes", "task.bytes", "parcel.bytes", "append.bytes", "read.bytes",
        "send.tries", "pool.patience")) {
      String key = "spark.gristmill." + name;
      String message = assertThrows(IllegalArgumentException.class, new Settings(Map.of(key, "0")::get)::check, key).getMessage();
      assertTrue(message.startsWith(key + " is '0'; it must be at least 1"), message);
      assertTrue(message.contains("Leave it out for the default"), message);
    }
    for (String name : List.of("pool.bytes", "store.bytes", "timeout", "send.retry", "fallback.blocksMin", "plan.share", "pool.threshold")) {
      new Settings(Map.of("spark.gristmill." + name, "0")::get).check();
    }
  }

  @Test
  void theErrorNamesEverySettingThatCannotBe() {
    Settings settings = new Settings(Map.of("spark.gristmill.page.bytes", "64", "spark.gristmill.recovery", "pray",
        "spark.gristmill.timeout", "120", "spark.gristmill.read.bytes", "2g")::get);
    assertEquals("spark.gristmill.page.bytes is '64'; it must be at least 1k. Leave it out for the default, 1m. "
        + "spark.gristmill.read.bytes is '2g'; it must be at most 1g. Leave it out for the default, 448k. "
        + "spark.gristmill.recovery is 'pray'; it must be recompute, resend or replicate. Leave it out for the default, recompute. "
        + "spark.gristmill.timeout is '120'; it must be 0 or at least 1s. Leave it out for the default, 0",
        assertThrows(IllegalArgumentException.class, settings::check).getMessage());
  }

  /** The error only asked for "a size such as 512k", and did not say that a negative one is refused. */
  @Test
  void negativeNumbersAreRefusedWithTheLeastThatMayBe() {
    Map<String, String> least = Map.of("store.bytes", "at least 0", "send.retry", "at least 0", "fallback.blocksMin", "at least 0", "page.bytes",
        "at least 1k", "timeout", "0 or at least 1s");
    least.forEach((name, wanted) -> {
      String key = "spark.gristmill." + name;
      String message = assertThrows(IllegalArgumentException.class, new Settings(Map.of(key, "-1")::get)::check, key).getMessage();
      assertTrue(message.startsWith(key + " is '-1'; it must be " + wanted + ". "), message);
    });
  }

  @Test
  void aPoolThatHoldsNoPageIsRefusedBesideOtherFaults() {
    Settings settings = new Settings(Map.of("spark.gristmill.pool.bytes", "5", "spark.gristmill.redo", "x")::get);
    String message = assertThrows(IllegalArgumentException.class, settings::check).getMessage();
    assertTrue(message.contains("spark.gristmill.pool.bytes is '5'") && message.contains("spark.gristmill.redo is 'x'"), message);
  }

  @Test
  void aPoolThatHoldsNoPageIsRefused() {
    String message = assertThrows(IllegalArgumentException.class, with(Settings.POOL_BYTES, "512k")::check).getMessage();
    assertTrue(message.contains("spark.gristmill.pool.bytes is '512k'") && message.contains("spark.gristmill.page.bytes, which is 1m"), message);
    new Settings(Map.of("spark.gristmill.pool.bytes", "512k", "spark.gristmill.page.bytes", "512kb")::get).check();
  }

  @Test
  void formerNamesAreStillRead() {
    Map<String, String> set = Map.of("spark.gristmill.timeoutMs", "5000", "spark.gristmill.pool.patienceMs", "7", "spark.gristmill.send.retryMs",
        "9");
    Settings settings = new Settings(set::get);
    assertEquals(List.of(5000L, 7L, 9L), List.of(settings.number(Settings.TIMEOUT),
        settings.number(Settings.POOL_PATIENCE), settings.number(Settings.SEND_RETRY)));
    assertEquals(List.of(), SettingNames.withoutEffect(set.keySet()));
    assertTrue(assertThrows(IllegalArgumentException.class, new Settings(Map.of("spark.gristmill.timeoutMs", "5")::get)::check).getMessage()
        .startsWith("spark.gristmill.timeoutMs is '5'"));
    assertEquals(List.of("spark.gristmill.timeoutMs has no effect, because spark.gristmill.timeout, its present name, is set too. Remove the former"),
        SettingNames.withoutEffect(List.of("spark.gristmill.timeoutMs", "spark.gristmill.timeout")));
  }

  /** A setting with a slip in its name had no effect, and nothing said so. */
  @Test
  void aNameThatNoSettingHasIsNamedWithTheNearest() {
    assertEquals(List.of("spark.gristmill.pages.bytes is not a setting of Gristmill and has no effect. Did you mean spark.gristmill.page.bytes?",
        "spark.gristmill.timeOut is not a setting of Gristmill and has no effect. Did you mean spark.gristmill.timeout?",
        "spark.gristmill.windwo.bytes is not a setting of Gristmill and has no effect. Did you mean spark.gristmill.window.bytes?"),
        SettingNames.withoutEffect(List.of("spark.gristmill.windwo.bytes", "spark.gristmill.timeOut",
            "spark.gristmill.recovery", "spark.gristmill.pages.bytes")));
  }

  @Test
  void aBadValueIsNamedWithWhatIsAllowed() {
    for (String bad : new String[] {"", "x", "-1", "1.5", "1 m", "1x", "99999999999999999999", "9999999999g"}) {
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
