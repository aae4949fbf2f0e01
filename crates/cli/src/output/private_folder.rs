//! Temporary folders that only their owner may enter, because copies of private input may lie in them.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::TempDir;

/// Makes a folder beneath `place`, with mode 0700 whatever the umask is. It is removed when it is dropped.
pub fn private_folder(place: &Path) -> io::Result<TempDir> {
    tempfile::Builder::new().permissions(Permissions::from_mode(0o700)).tempdir_in(place)
}
