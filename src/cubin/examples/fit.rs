use sass2mlir_cubin::{Container, Image, Patch};
fn main() {
    for f in std::env::args().skip(1) {
        let file = std::fs::read(&f).unwrap();
        let t = std::time::Instant::now();
        let c = Container::parse(&file).unwrap();
        println!("{f}: {} images, parse {:?}", c.len(), t.elapsed());
        let (mut ok, mut no, mut skip) = (0, 0, 0);
        let t = std::time::Instant::now();
        for im in c.images() {
            let im = im.unwrap();
            let Ok(i) = Image::parse(&im.bytes) else {
                skip += 1;
                continue;
            };
            let Some(code) = i.codes().first() else {
                skip += 1;
                continue;
            };
            // one bit in each FFMA-like word: every 5th instruction
            let b: Vec<u8> = code
                .bytes
                .iter()
                .enumerate()
                .map(|(i, b)| if i % 80 == 9 { b ^ 0x10 } else { *b })
                .collect();
            let mut p = Patch::new(&i);
            p.replace_code(code, &b).unwrap();
            let n = p.finish();
            match c.rebuild(&[(im.index, &n)]) {
                Ok(r) => {
                    ok += 1;
                    let a = Container::parse(&r).unwrap();
                    assert!(a.image(im.index).unwrap().unwrap().bytes == n);
                }
                Err(e) => {
                    no += 1;
                    if no < 4 {
                        println!("  {} {e}", im.compression);
                    }
                }
            }
        }
        println!("  {ok} ok, {no} do not fit, {skip} skipped, {:?}", t.elapsed());
    }
}
