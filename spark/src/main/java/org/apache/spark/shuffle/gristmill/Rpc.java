package org.apache.spark.shuffle.gristmill;

import static org.gristmill.spark.node.PluginLog.LOG;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.apache.spark.rpc.RpcCallContext;
import org.apache.spark.rpc.RpcEndpointRef;
import org.apache.spark.rpc.RpcTimeout;
import org.gristmill.core.format.Message;
import org.gristmill.core.plan.Settings;
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

  /** Answers a message, which is bytes, or a pair of bytes and an endpoint reference, now or later. */
  interface Answerer {
    CompletionStage<? extends Message> answer(Object message);
  }

  private Rpc() {}

  static Message ask(RpcEndpointRef to, Message message, long timeoutMs) {
    return Message.decode(to.askSync(Message.encode(message), timeout(timeoutMs), BYTES));
  }

  /** Asks with a pair of bytes and an endpoint reference. */
  static Message ask(RpcEndpointRef to, Object message, long timeoutMs) {
    return Message.decode(to.askSync(message, timeout(timeoutMs), BYTES));
  }

  /** The answer, or why there is none; by the time-out at the latest. Throws nothing. */
  static CompletionStage<Message> askLater(RpcEndpointRef to, Message message, long timeoutMs) {
    try {
      return FutureConverters.asJava(to.ask(Message.encode(message), timeout(timeoutMs), BYTES)).thenApply(Message::decode);
    } catch (Throwable e) {
      return CompletableFuture.failedFuture(e);
    }
  }

  static void send(RpcEndpointRef to, Message message) {
    to.send(Message.encode(message));
  }

  /** Every message is answered: with a message, or with the exception that prevented it. */
  static PartialFunction<Object, BoxedUnit> answering(RpcCallContext context, Answerer answerer) {
    return handling(message -> {
      CompletionStage<? extends Message> answer;
      try {
        answer = answerer.answer(message);
      } catch (Throwable e) {
        answer = CompletableFuture.failedFuture(e);
      }
      answer.thenApply(Message::encode).whenComplete((bytes, error) -> {
        if (error == null) {
          context.reply(bytes);
        } else {
          context.sendFailure(told(error));
        }
      });
    });
  }

  /**
   * An exception that the other side can load, with the same message. An error must not look like an error of the
   * executor that asks, because Spark ends an executor when its task fails with an error.
   */
  private static IllegalStateException told(Throwable error) {
    Throwable thrown = error instanceof CompletionException && error.getCause() != null ? error.getCause() : error;
    if (thrown instanceof Error) {
      LOG.error("A message could not be answered", thrown);
    }
    IllegalStateException told = new IllegalStateException(
        thrown instanceof IllegalStateException ? thrown.getMessage() : thrown.toString());
    told.setStackTrace(thrown.getStackTrace());
    return told;
  }

  /** Nothing that is thrown reaches Spark's dispatcher, which would not go on after an error. */
  static PartialFunction<Object, BoxedUnit> handling(Consumer<Object> handler) {
    return new AbstractPartialFunction<>() {
      @Override
      public boolean isDefinedAt(Object message) {
        return true;
      }

      @Override
      public BoxedUnit apply(Object message) {
        try {
          handler.accept(message);
        } catch (Throwable e) {
          LOG.error("A message could not be handled", e);
        }
        return BoxedUnit.UNIT;
      }
    };
  }

  private static RpcTimeout timeout(long ms) {
    return new RpcTimeout(FiniteDuration.apply(ms, TimeUnit.MILLISECONDS), Settings.TIMEOUT.key());
  }
}
