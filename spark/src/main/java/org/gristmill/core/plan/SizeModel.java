package org.gristmill.core.plan;

import java.util.Arrays;

/**
 * Predicts partition sizes from samples taken while maps run: {@code size_i = a_i * input + b_i} by least squares, one
 * line per partition (OPS, formula 1). A sample is (input done so far, bytes per partition so far).
 */
public final class SizeModel {
  /** Below this share of explained variance a line says nothing, and the caller should not trust the sizes. */
  static final double FIT_MIN = 0.5;

  private final int partitions;
  private int samples;
  private double sumX;
  private double sumXX;
  private final double[] sumY;
  private final double[] sumXY;
  private final double[] sumYY;

  public SizeModel(int partitions) {
    this.partitions = partitions;
    sumY = new double[partitions];
    sumXY = new double[partitions];
    sumYY = new double[partitions];
  }

  public void add(double input, long[] bytes) {
    samples++;
    sumX += input;
    sumXX += input * input;
    for (int p = 0; p < partitions; p++) {
      sumY[p] += bytes[p];
      sumXY[p] += input * bytes[p];
      sumYY[p] += (double) bytes[p] * bytes[p];
    }
  }

  /** Share of the variance of all partitions that the lines explain, 0 to 1; 0 if there is nothing to fit a line to. */
  public double fit() {
    double total = 0;
    double explained = 0;
    double varX = samples * sumXX - sumX * sumX;
    if (samples < 2 || varX <= 0) {
      return 0;
    }
    for (int p = 0; p < partitions; p++) {
      double cov = samples * sumXY[p] - sumX * sumY[p];
      total += samples * sumYY[p] - sumY[p] * sumY[p];
      explained += cov * cov / varX;
    }
    return total <= 0 ? 0 : Math.min(1, explained / total);
  }

  /** How far predicted sizes are off the true ones, summed over partitions, as a share of all true bytes. */
  public static double error(long[] predicted, long[] actual) {
    long total = 0;
    long off = 0;
    for (int p = 0; p < actual.length; p++) {
      total += actual[p];
      off += Math.abs(predicted[p] - actual[p]);
    }
    return total == 0 ? 0 : (double) off / total;
  }

  /** Sizes at {@code input}; null if the samples are too few or fit no line. */
  public long[] predict(double input) {
    if (fit() < FIT_MIN) {
      return null;
    }
    long[] sizes = new long[partitions];
    double varX = samples * sumXX - sumX * sumX;
    Arrays.setAll(sizes, p -> {
      double a = (samples * sumXY[p] - sumX * sumY[p]) / varX;
      double b = (sumY[p] - a * sumX) / samples;
      return Math.max(0, Math.round(a * input + b));
    });
    return sizes;
  }
}
