//! Joins orders with the customers who made them.
//!
//!     cargo run --release --example join -- CUSTOMERS ORDERS
//!
//! A line of the first file is the number of a customer and a name (`17 Ann`), one of the second the number of a
//! customer and what was ordered (`17 tea`).

use gristmill::{Either, Emit, Input, Job, MapReduce, ProgramError, Split};

/// The tag of the file of orders.
const ORDERS: u32 = 1;

struct Rows;

impl MapReduce for Rows {
    type Key = u64;
    /// A name on the left, an order on the right.
    type Value = Either<String, String>;

    fn map(&self, split: &mut Split<'_>, out: &mut impl Emit<u64, Either<String, String>>) -> Result<(), ProgramError> {
        for line in split.lines() {
            let (number, text) = str::from_utf8(line)?.split_once(' ').unwrap_or_default();
            let is_order = split.tag() == ORDERS;
            out.emit(number.parse()?, if is_order { Either::Right(text) } else { Either::Left(text) });
        }
        Ok(())
    }
}

fn main() -> gristmill::Result<()> {
    let mut paths = std::env::args_os().skip(1);
    let customers = Input::paths(paths.next());
    let job = Job::new(&Rows, customers.chain(Input::paths(paths.next()).tagged(ORDERS)));
    for (number, (name, what)) in &job.inner_join().run()?.0 {
        println!("{number}\t{name}\t{what}");
    }
    Ok(())
}
