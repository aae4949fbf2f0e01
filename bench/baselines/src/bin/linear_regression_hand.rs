//! Linear regression of byte pairs by hand. Prints `name\tvalue` for n, slope, intercept and r.

use baselines::{arguments, blocks, fail, with_simd};

#[derive(Default)]
struct Sums {
    n: u64,
    x: u64,
    y: u64,
    xx: u64,
    yy: u64,
    xy: u64,
}

with_simd!(
    fn add(sums: &mut Sums, block: &[u8]) {
        add_inlined
    }
);

#[inline(always)]
fn add_inlined(sums: &mut Sums, block: &[u8]) {
    // At most 2048 pairs add 2048 x 255 x 255 < 2^27 to a 32-bit sum. The compiler turns the loop into
    // multiply-and-add of 16-bit lanes.
    for stretch in block.chunks(4096) {
        let (mut x, mut y, mut xx, mut yy, mut xy) = (0i32, 0i32, 0i32, 0i32, 0i32);
        for pair in stretch.as_chunks::<2>().0 {
            let pair = u16::from_le_bytes(*pair);
            let (a, b) = ((pair & 0xff) as i16, (pair >> 8) as i16);
            x += i32::from(a);
            y += i32::from(b);
            xx += i32::from(a) * i32::from(a);
            yy += i32::from(b) * i32::from(b);
            xy += i32::from(a) * i32::from(b);
        }
        sums.n += stretch.len() as u64 / 2;
        sums.x += x as u64;
        sums.y += y as u64;
        sums.xx += xx as u64;
        sums.yy += yy as u64;
        sums.xy += xy as u64;
    }
}

fn main() -> std::io::Result<()> {
    let ([path], [threads]) = arguments("linear_regression_hand FILE [--threads N]", [("--threads", "2")]);
    let threads = threads.parse().unwrap_or_else(|_| fail("--threads needs a number"));
    let all = blocks::each(&path, 0, 256 << 10, threads, Sums::default, add)?;
    let sum = |of: fn(&Sums) -> u64| all.iter().map(of).sum::<u64>() as f64;
    let (n, x, y) = (sum(|s| s.n), sum(|s| s.x), sum(|s| s.y));
    let (xx, yy, xy) = (sum(|s| s.xx), sum(|s| s.yy), sum(|s| s.xy));
    let slope = (n * xy - x * y) / (n * xx - x * x);
    println!("n\t{n}");
    println!("slope\t{slope:.6}");
    println!("intercept\t{:.6}", (y - slope * x) / n);
    println!("r\t{:.6}", (n * xy - x * y) / ((n * xx - x * x) * (n * yy - y * y)).sqrt());
    Ok(())
}
