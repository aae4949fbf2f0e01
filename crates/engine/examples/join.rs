//! Joins orders with the customers who made them.
//!
//!     cargo run --release --example join -- CUSTOMERS ORDERS
//!
//! A line of the first file is the number of a customer and a name (`17 Ann`), one of the second the number of a
//! customer and what was ordered (`17 tea`).

use gristmill::{Emit, Input, Job, MapReduce, ProgramError, Split};

/// The tag of the file of orders.
const ORDERS: u32 = 1;

struct Rows;

impl MapReduce for Rows {
    type Key = u64;
    /// Whether it is an order, and its text. Values come to the reduce function in ascending order: customers first.
    type Value = (bool, String);

    fn map(&self, split: &mut Split<'_>, out: &mut impl Emit<u64, (bool, String)>) -> Result<(), ProgramError> {
        for line in split.lines() {
            let (number, text) = str::from_utf8(line)?.split_once(' ').unwrap_or_default();
            out.emit(number.parse()?, (split.tag() == ORDERS, text));
        }
        Ok(())
    }
}

fn main() -> gristmill::Result<()> {
    let mut paths = std::env::args_os().skip(1);
    let customers = Input::paths(paths.next());
    let job = Job::new(&Rows, customers.chain(Input::paths(paths.next()).tagged(ORDERS)));
    let joined = job.reduce_to::<u64, (String, String)>(|number, rows, emit| {
        let mut customers = Vec::new();
        for (is_order, text) in rows.owned() {
            match is_order {
                false => customers.push(text),
                true => customers.iter().for_each(|name| emit(number, (name, &text))),
            }
        }
        Ok(())
    });
    for (number, (name, what)) in &joined.run()?.0 {
        println!("{number}\t{name}\t{what}");
    }
    Ok(())
}
