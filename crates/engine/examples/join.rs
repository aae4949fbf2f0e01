//! Joins orders with the customers who made them.
//!
//!     cargo run --release --example join -- CUSTOMERS ORDERS
//!
//! A line of the first file is the number of a customer and a name (`17 Ann`), one of the second the number of a
//! customer and what was ordered (`17 tea`).

use gristmill::{Chunk, Either, Emit, Input, Job, Made, MapReduce, ProgramError};

/// The tag of the file of orders.
const ORDERS: u32 = 1;

pub(crate) struct Rows;

impl MapReduce for Rows {
    type Key = u64;
    /// A name on the left, an order on the right.
    type Value = Either<String, String>;

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<u64, Either<String, String>>) -> Result<(), ProgramError> {
        for line in chunk.lines() {
            let (number, text) = str::from_utf8(line)?.split_once(' ').unwrap_or_default();
            let is_order = chunk.tag() == ORDERS;
            out.emit(number.parse()?, if is_order { Either::Right(text) } else { Either::Left(text) });
        }
        Ok(())
    }
}

pub(crate) fn joined(customers: Input, orders: Input) -> Job<'static, Rows, Made<u64, (String, String)>> {
    Job::new(&Rows, customers.chain(orders.tagged(ORDERS))).inner_join()
}

fn main() -> gristmill::Result<()> {
    let mut paths = std::env::args_os().skip(1);
    let [customers, orders] = [(); 2].map(|()| Input::paths(paths.next()));
    for (number, (name, what)) in &joined(customers, orders).run()?.0 {
        println!("{number}\t{name}\t{what}");
    }
    Ok(())
}
