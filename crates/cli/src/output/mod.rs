//! The output: rows in any format, to a file that appears whole or not at all.

pub mod side_files;
pub mod packer;
pub mod column;
pub mod parts;
pub mod text;
#[cfg(feature = "columnar")]
pub mod columns;
pub mod rows;
pub mod destination;
pub mod outputs;
