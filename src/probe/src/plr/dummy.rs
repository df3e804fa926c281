//! The smallest cubin that `nvdisasm -plr` takes: string tables, a symbol for each kernel, and `.text.k0`, `.text.k1`, ...

use isa::Target;

/// EXIT, always taken, with stall 5: ends every section.
const EXIT: u128 = 0x000f_ea00_0380_0000_0000_0000_0000_794d;
const SHT_PROGBITS: u32 = 1;
const SHT_SYMTAB: u32 = 2;
const SHT_STRTAB: u32 = 3;

struct Writer {
    body: Vec<u8>,
    headers: Vec<u8>,
    count: u16,
}

struct Section<'a> {
    name: usize,
    kind: u32,
    flags: u64,
    data: &'a [u8],
    link: u32,
    info: u32,
    align: usize,
    entry: u64,
}

impl Writer {
    fn add(&mut self, s: Section<'_>) {
        self.body.resize(self.body.len().next_multiple_of(s.align), 0);
        let h = &mut self.headers;
        h.extend((s.name as u32).to_le_bytes());
        h.extend(s.kind.to_le_bytes());
        h.extend(s.flags.to_le_bytes());
        h.extend([0; 8]);
        h.extend((self.body.len() as u64).to_le_bytes());
        h.extend((s.data.len() as u64).to_le_bytes());
        h.extend(s.link.to_le_bytes());
        h.extend(s.info.to_le_bytes());
        h.extend((s.align as u64).to_le_bytes());
        h.extend(s.entry.to_le_bytes());
        self.body.extend(s.data);
        self.count += 1;
    }
}

/// A cubin of `target` with one kernel `kN` for the N-th group: its words, then EXIT. ABI 8, or ABI 7 where the target has no other.
pub fn dummy_cubin(target: Target, groups: &[&[u128]]) -> Vec<u8> {
    let number = target.number();
    let (abi, version, flags, registers): (&[u8], u32, u32, u32) = match number {
        // As toolkit 12.8 writes them; its nvdisasm takes no kernel of 255 registers.
        ..75 => (b"\x33\x07", 128, number << 16 | 0x0500 | number, 254),
        _ => {
            let arch = if target.is_arch_specific() { 8 } else { 0 };
            (b"\x41\x08", 1, 0x0600_0004 | number << 8 | arch, 255)
        }
    };
    let mut names = b"\0.shstrtab\0.strtab\0.symtab\0".to_vec();
    let (shstrtab, strtab, symtab) = (1, 11, 19);
    let mut section_names = Vec::new();
    let mut symbols = vec![0; 24];
    for i in 0..groups.len() {
        section_names.push(names.len());
        names.extend(format!(".text.k{i}\0").bytes());
    }
    let mut strings = vec![0];
    for (i, group) in groups.iter().enumerate() {
        symbols.extend((strings.len() as u32).to_le_bytes());
        symbols.extend([0x12, 0x10]); // global function, kernel entry
        symbols.extend((4 + i as u16).to_le_bytes());
        symbols.extend(0u64.to_le_bytes());
        symbols.extend((16 * (group.len() as u64 + 1)).to_le_bytes());
        strings.extend(format!("k{i}\0").bytes());
    }
    let mut w = Writer {
        body: vec![0; 64],
        headers: vec![0; 64],
        count: 1,
    };
    let table = |name, kind, data, link, info, entry| Section {
        name,
        kind,
        flags: 0,
        data,
        link,
        info,
        align: 8,
        entry,
    };
    w.add(table(shstrtab, SHT_STRTAB, &names, 0, 0, 0));
    w.add(table(strtab, SHT_STRTAB, &strings, 0, 0, 0));
    w.add(table(symtab, SHT_SYMTAB, &symbols, 2, 1, 24));
    for (i, group) in groups.iter().enumerate() {
        let code: Vec<u8> = group.iter().chain([&EXIT]).flat_map(|w| w.to_le_bytes()).collect();
        w.add(Section {
            name: section_names[i],
            kind: SHT_PROGBITS,
            flags: 6,
            data: &code,
            link: 3,
            info: registers << 24 | (1 + i as u32), // register count, symbol
            align: 16,
            entry: 0,
        });
    }
    w.body.resize(w.body.len().next_multiple_of(8), 0);
    let mut out = b"\x7fELF\x02\x01\x01".to_vec();
    out.extend(abi);
    out.extend([0; 7]);
    out.extend(2u16.to_le_bytes());
    out.extend(190u16.to_le_bytes());
    out.extend(version.to_le_bytes());
    out.extend([0; 16]);
    out.extend((w.body.len() as u64).to_le_bytes());
    out.extend(flags.to_le_bytes());
    for half in [64u16, 56, 0, 64, w.count, 1] {
        out.extend(half.to_le_bytes());
    }
    w.body[..64].copy_from_slice(&out);
    w.body.extend(w.headers);
    w.body
}
