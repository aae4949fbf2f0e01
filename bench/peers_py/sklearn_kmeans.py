"""K-means as a user of scikit-learn writes it, from the first k points as centres (pip install scikit-learn)."""

import argparse

import numpy as np
from sklearn.cluster import KMeans

args = argparse.ArgumentParser()
args.add_argument("file")
args.add_argument("--k", type=int, default=100)
args = args.parse_args()
points = np.loadtxt(args.file, delimiter=",")
model = KMeans(args.k, init=points[: args.k], n_init=1, max_iter=100_000, tol=0, algorithm="lloyd").fit(points)
for centre in model.cluster_centers_:
    print("\t".join(f"{value:.6f}" for value in centre))
