package org.gristmill.spark.node;

import static org.mockito.ArgumentMatchers.any;
import static org.mockito.ArgumentMatchers.anyString;
import static org.mockito.ArgumentMatchers.contains;
import static org.mockito.ArgumentMatchers.eq;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.times;
import static org.mockito.Mockito.verify;

import java.io.IOException;
import org.junit.jupiter.api.Test;
import org.slf4j.Logger;

/**
 * While an executor was dead and the driver did not know yet, the others logged a stack trace for every parcel that
 * they had for it.
 */
class UnreachableExecutorsTest {
  private final Logger log = mock(Logger.class);
  private final UnreachableExecutors unreachable = new UnreachableExecutors(log);

  private void fail(String executor, int parcels) {
    for (int i = 0; i < parcels; i++) {
      unreachable.failed(executor, i % 20, new IOException("connection refused"));
    }
  }

  @Test
  void eachExecutorIsNamedOnce() {
    fail("1", 200);
    fail("2", 1);
    verify(log, times(1)).warn(anyString(), eq("1"), contains("connection refused"));
    verify(log, times(1)).warn(anyString(), eq("2"), contains("connection refused"));
    verify(log, times(201)).debug(anyString(), any(), any(), any());
  }

  @Test
  void anExecutorThatIsLostAgainIsNamedAgain() {
    fail("1", 3);
    unreachable.reached("1");
    fail("1", 3);
    verify(log, times(2)).warn(anyString(), eq("1"), contains("connection refused"));
  }
}
