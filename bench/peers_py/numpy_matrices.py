"""Matrix product, or means and covariances, as a user of numpy writes them; prints what the programs by hand print."""

import sys

import numpy as np

what, *files = sys.argv[1:]
first, *others = (np.load(file) for file in files)
if what == "product":
    product = first @ others[0]
    values = {"trace": f"{product.trace():.3f}", "sum": f"{product.sum():.3f}", "corner": f"{product[-1, -1]:.3f}"}
else:
    covariance = np.cov(first, rowvar=False)
    values = {
        "means": f"{first.mean(axis=0).sum():.6f}",
        "trace": f"{covariance.trace():.6f}",
        "sum": f"{covariance.sum():.6f}",
        "corner": f"{covariance[-1, -2]:.6f}",
    }
for name, value in values.items():
    print(f"{name}\t{value}")
