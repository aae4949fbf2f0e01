"""Makes the golden files in this folder: small inputs, and the answers of numpy and scikit-learn.

    python3 -m venv venv && venv/bin/pip install numpy scikit-learn
    venv/bin/python crates/apps/tests/golden/make.py

The tests (crates/apps/tests/answers/golden.rs) only read the files. Everything comes from one seed, so running this again with the
same versions makes the same bytes. Made with numpy 2.4.6 and scikit-learn 1.9.1.
"""

from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression

HERE = Path(__file__).parent
random = np.random.default_rng(7)


def table(name, numbers):
    """CSV without a header, every digit kept."""
    np.savetxt(HERE / name, np.atleast_2d(numbers), delimiter=",", fmt="%.17g")


# Matrix product: awkward sizes, numbers of both signs, over several orders of magnitude.
a = random.normal(size=(37, 23)) * 10.0 ** random.integers(-3, 4, size=(37, 23))
b = random.normal(size=(23, 41))
np.save(HERE / "matrix-a.npy", a)
np.save(HERE / "matrix-b.npy", b)
np.save(HERE / "matrix-product.npy", a @ b)

# Principal components: correlated variables with different means.
data = random.normal(size=(60, 3)) @ random.normal(size=(3, 8)) + 0.3 * random.normal(size=(60, 8)) + np.arange(8)
data = np.round(data, 6)
pca = PCA().fit(data)
signs = np.sign(pca.components_[np.arange(8), np.abs(pca.components_).argmax(axis=1)])
table("pca-data.csv", data)
table("pca-means.csv", pca.mean_)
table("pca-covariance.csv", np.cov(data, rowvar=False))
# A row for each component: its variance, its share, its direction with the largest entry positive.
table("pca-components.csv", np.column_stack([pca.explained_variance_, pca.explained_variance_ratio_, pca.components_ * signs[:, None]]))

# k-means from the first k points to the end.
points = np.round(np.concatenate([random.normal(centre, 2.0, size=(50, 3)) for centre in (0, 5, 9, 14)]), 4)
random.shuffle(points)
kmeans = KMeans(6, init=points[:6], n_init=1, tol=0.0, max_iter=1000, algorithm="lloyd").fit(points)
table("kmeans-points.csv", points)
# A row for each centre: the number of its points, its place.
table("kmeans-centres.csv", np.column_stack([np.bincount(kmeans.labels_), kmeans.cluster_centers_]))
table("kmeans-inertia.csv", kmeans.inertia_)

# Linear regression: byte pairs, and the same as CSV.
x = random.integers(0, 256, size=500)
y = np.clip(0.4 * x + 30 + random.normal(0, 12, size=500), 0, 255).astype(np.uint8)
line = LinearRegression().fit(x[:, None], y)
(HERE / "regression.bin").write_bytes(np.column_stack([x, y]).astype(np.uint8).tobytes())
table("regression-pairs.csv", np.column_stack([x, y]))
# Slope, intercept, r.
table("regression-line.csv", [line.coef_[0], line.intercept_, np.corrcoef(x, y)[0, 1]])

# Histogram: a 24-bit BMP whose rows need padding.
width, height = 31, 19
pixels = random.integers(0, 256, size=(height, width, 3), dtype=np.uint8)
rows = [row.tobytes().ljust((3 * width + 3) // 4 * 4, b"\0") for row in pixels]
header = np.array([40, width, height, 1 | 24 << 16, 0, 0, 2835, 2835, 0, 0], dtype="<u4").tobytes()
body = b"".join(rows)
start = b"BM" + np.array([54 + len(body), 0, 54], dtype="<u4").tobytes()
(HERE / "histogram.bmp").write_bytes(start + header + body)
# Columns: blue, green, red.
table("histogram-counts.csv", np.column_stack([np.bincount(pixels[..., c].ravel(), minlength=256) for c in range(3)]))
