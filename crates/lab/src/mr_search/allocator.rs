//! Allocators that can replace the C library's, in the places where distributions install them.

use std::path::{Path, PathBuf};

/// An allocator with its library.
pub struct Allocator {
    pub name: &'static str,
    library: &'static str,
    /// The package of Debian and its derivatives that contains it.
    package: &'static str,
}

/// The allocators of DMR and MR-Search (docs/bibliography.md), and a current one.
pub const ALLOCATORS: [Allocator; 3] = [
    Allocator { name: "jemalloc", library: "libjemalloc.so.2", package: "libjemalloc2" },
    Allocator { name: "tbbmalloc", library: "libtbbmalloc_proxy.so.2", package: "libtbbmalloc2" },
    Allocator { name: "mimalloc", library: "libmimalloc.so.2", package: "libmimalloc2.0" },
];

impl Allocator {
    /// The library, if it is here.
    pub fn find(&self) -> Option<PathBuf> {
        let multiarch = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
        let places = [&multiarch, "/usr/lib64", "/usr/lib", "/usr/local/lib", "/lib64", "/lib"];
        places.iter().map(|place| Path::new(place).join(self.library)).find(|path| path.exists())
    }

    /// Returns the advice to print if the library is missing.
    pub fn advice(&self) -> String {
        format!("{} is not here: {} was not found (apt-get install {})", self.name, self.library, self.package)
    }
}
