package org.apache.spark.shuffle.gristmill;

import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import org.apache.spark.rpc.RpcEndpointRef;
import org.apache.spark.rpc.RpcTimeout;
import org.gristmill.core.Message;
import scala.PartialFunction;
import scala.concurrent.duration.FiniteDuration;
import scala.jdk.javaapi.FutureConverters;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractPartialFunction;
import scala.runtime.BoxedUnit;

/** {@link Message}s over Spark's RPC. */
final class Rpc {
  static final String DRIVER = "gristmill-driver";
  static final String EXECUTOR = "gristmill-executor-";
  private static final ClassTag<byte[]> BYTES = ClassTag$.MODULE$.apply(byte[].class);

  /** What an endpoint does with a message that came as bytes, or with a pair of bytes and an endpoint reference. */
  interface Handler {
    void handle(Object message);
  }

  private Rpc() {}

  static Message ask(RpcEndpointRef to, Message message, long timeoutMs) {
    return Message.decode(to.askSync(Message.encode(message), timeout(timeoutMs), BYTES));
  }

  /** Asks with something beside the bytes. */
  static Message ask(RpcEndpointRef to, Object message, long timeoutMs) {
    return Message.decode(to.askSync(message, timeout(timeoutMs), BYTES));
  }

  static CompletionStage<Message> askLater(RpcEndpointRef to, Message message, long timeoutMs) {
    return FutureConverters.asJava(to.ask(Message.encode(message), timeout(timeoutMs), BYTES)).thenApply(Message::decode);
  }

  static void send(RpcEndpointRef to, Message message) {
    to.send(Message.encode(message));
  }

  static PartialFunction<Object, BoxedUnit> handler(Handler handler) {
    return new AbstractPartialFunction<>() {
      @Override
      public boolean isDefinedAt(Object message) {
        return true;
      }

      @Override
      public BoxedUnit apply(Object message) {
        handler.handle(message);
        return BoxedUnit.UNIT;
      }
    };
  }

  private static RpcTimeout timeout(long ms) {
    return new RpcTimeout(FiniteDuration.apply(ms, TimeUnit.MILLISECONDS), "spark.gristmill.flush.timeoutMs");
  }
}
