package org.gristmill.core.format;

import java.io.IOException;
import java.lang.reflect.Constructor;
import java.lang.reflect.RecordComponent;
import java.util.Arrays;
import java.util.List;

/** A kind of message: its number, and the record that says which fields follow it. */
final class MessageKind {
  private static final List<MessageKind> KINDS = List.of(new MessageKind(1, Message.Register.class), new MessageKind(2, Message.Start.class),
      new MessageKind(3, Message.Begin.class), new MessageKind(4, Message.Commit.class), new MessageKind(5, Message.Committed.class),
      new MessageKind(6, Message.PlanRequest.class), new MessageKind(7, Message.Planned.class), new MessageKind(8, Message.Locate.class),
      new MessageKind(9, Message.Located.class), new MessageKind(10, Message.Flush.class), new MessageKind(11, Message.Done.class),
      new MessageKind(12, Message.Missing.class), new MessageKind(13, Message.StoreFailed.class), new MessageKind(14, Message.ReadingEnds.class),
      new MessageKind(20, Message.Leaving.class), new MessageKind(21, Message.Refused.class));

  private final int number;
  private final Class<? extends Message> type;
  private final RecordComponent[] fields;
  private final Constructor<? extends Message> constructor;

  private MessageKind(int number, Class<? extends Message> type) {
    this.number = number;
    this.type = type;
    fields = type.getRecordComponents();
    try {
      constructor = type.getConstructor(Arrays.stream(fields).map(RecordComponent::getType).toArray(Class<?>[]::new));
    } catch (NoSuchMethodException e) {
      throw new AssertionError(e); // every record has one with its fields
    }
  }

  static void write(Message message, MessageOutput out) throws IOException {
    MessageKind kind = KINDS.stream().filter(k -> k.type == message.getClass()).findFirst().orElseThrow();
    out.writeByte(kind.number);
    for (RecordComponent field : kind.fields) {
      try {
        out.writeField(field.getAccessor().invoke(message));
      } catch (ReflectiveOperationException e) {
        throw new AssertionError(e); // the accessor of a public record
      }
    }
  }

  static Message read(MessageInput in) throws IOException {
    int number = in.readByte();
    for (MessageKind kind : KINDS) {
      if (kind.number == number) {
        return kind.readFields(in);
      }
    }
    throw new IOException("message of unknown kind " + number);
  }

  private Message readFields(MessageInput in) throws IOException {
    Object[] values = new Object[fields.length];
    for (int i = 0; i < values.length; i++) {
      values[i] = in.readField(fields[i].getType());
    }
    try {
      return constructor.newInstance(values);
    } catch (ReflectiveOperationException e) {
      throw new AssertionError(e); // the constructor of a public record, which checks nothing
    }
  }
}
