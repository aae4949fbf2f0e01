package org.apache.spark.shuffle.gristmill;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;

/**
 * Stands between executors: what is sent to its port goes on to another one, and what comes back too, and it keeps all
 * of it.
 */
final class RecordingProxy implements AutoCloseable {
  private final ServerSocket door;
  private final String host;
  private final int port;
  private final ByteArrayOutputStream there = new ByteArrayOutputStream();
  private final ByteArrayOutputStream back = new ByteArrayOutputStream();

  RecordingProxy(String host, int port) throws IOException {
    this.host = host;
    this.port = port;
    door = new ServerSocket(0, 50, InetAddress.getByName(host));
    start(this::accept);
  }

  int port() {
    return door.getLocalPort();
  }

  /** The bytes that were sent to the port, as text of one character a byte. */
  synchronized String there() {
    return there.toString(StandardCharsets.ISO_8859_1);
  }

  /** The bytes that came back. */
  synchronized String back() {
    return back.toString(StandardCharsets.ISO_8859_1);
  }

  private void accept() throws IOException {
    while (true) {
      Socket from = door.accept();
      Socket to = new Socket(host, port);
      start(() -> copy(from, to, there));
      start(() -> copy(to, from, back));
    }
  }

  private void copy(Socket from, Socket to, ByteArrayOutputStream kept) throws IOException {
    byte[] bytes = new byte[1 << 16];
    try (InputStream in = from.getInputStream(); OutputStream out = to.getOutputStream()) {
      for (int count = in.read(bytes); count >= 0; count = in.read(bytes)) {
        synchronized (this) {
          kept.write(bytes, 0, count);
        }
        out.write(bytes, 0, count);
      }
    }
  }

  private interface Body {
    void run() throws IOException;
  }

  private static void start(Body body) {
    Thread thread = new Thread(() -> {
      try {
        body.run();
      } catch (IOException e) {
        // one of both ends has closed
      }
    }, "recording-proxy");
    thread.setDaemon(true);
    thread.start();
  }

  @Override
  public void close() throws IOException {
    door.close();
  }
}
