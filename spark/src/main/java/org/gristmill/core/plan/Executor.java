package org.gristmill.core.plan;

/** An executor and where its block transfer listens. */
public record Executor(String id, String host, int port) {}
