//! Reads the control-flow graphs that `nvdisasm -bbcfg -poff` prints in dot.
//!
//! A cluster is a function, a node a basic block, its label the block's lines: `0010:` stands before each instruction.

use std::collections::{BTreeSet, HashMap};

/// The graph of one function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Function {
    /// The symbol.
    pub name: String,
    /// Byte offsets of the instructions in the section.
    pub instructions: BTreeSet<u64>,
    /// From the last instruction of a block to the first of another, and between neighbours within one.
    pub edges: BTreeSet<(u64, u64)>,
}

/// A block: its first and last instruction; `None` for one without instructions.
type Ends = Option<(u64, u64)>;

/// The functions of a file, in the order of the output.
pub fn parse(dot: &str) -> Result<Vec<Function>, String> {
    let mut functions: Vec<Function> = Vec::new();
    let mut ends: HashMap<&str, Ends> = HashMap::new();
    let mut jumps: Vec<(&str, &str)> = Vec::new();
    let mut node = None;
    for line in dot.lines() {
        if let Some(name) = line.strip_prefix("subgraph \"cluster_") {
            let name = name.strip_suffix("\" {").ok_or_else(|| unknown(line))?;
            functions.push(Function {
                name: name.to_owned(),
                ..Function::default()
            });
        } else if let Some((from, to)) = line.split_once(" -> ") {
            jumps.push((quoted(from)?, quoted(to)?));
        } else if line.starts_with('"') {
            node = Some(quoted(line)?);
        } else if let Some(label) = line.strip_prefix("[label=\"") {
            let function = functions.last_mut().ok_or_else(|| unknown(line))?;
            let name = node.take().ok_or_else(|| unknown(line))?;
            ends.insert(name, block(function, label));
        } else if line == "}" {
            // The file's last brace closes no function.
            let Some(function) = functions.last_mut() else { continue };
            for (from, to) in jumps.drain(..) {
                let end = |name: &str| ends.get(name).copied().ok_or_else(|| format!("no block `{name}`"));
                if let (Some((_, last)), Some((first, _))) = (end(from)?, end(to)?) {
                    function.edges.insert((last, first));
                }
            }
            ends.clear();
        }
    }
    Ok(functions)
}

/// Adds a block's instructions and the edges between them.
fn block(function: &mut Function, label: &str) -> Ends {
    let mut ends: Ends = None;
    for line in label.split("\\l") {
        let mut line = line.trim_start_matches('{');
        while let Some((_, rest)) = line.strip_prefix(['|', '<']).and_then(|l| l.split_once('>')) {
            line = rest; // `<entry>`, `|<exit0>`: where edges attach
        }
        let offset = line
            .split_once(":\\ ")
            .map(|(digits, _)| u64::from_str_radix(digits, 16));
        let Some(Ok(offset)) = offset else { continue };
        function.instructions.insert(offset);
        ends = Some(match ends {
            None => (offset, offset),
            Some((first, last)) => {
                function.edges.insert((last, offset));
                (first, offset)
            }
        });
    }
    ends
}

fn quoted(text: &str) -> Result<&str, String> {
    let rest = text.strip_prefix('"').ok_or_else(|| unknown(text))?;
    rest.split_once('"').map(|(name, _)| name).ok_or_else(|| unknown(text))
}

fn unknown(line: &str) -> String {
    format!("line not understood: {line}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOT: &str = r#"digraph f {
subgraph "cluster_k" {
node [fontname="Courier",fontsize=10,shape=Mrecord];
"k"
[label="{<entry>	.global		k\l.text.k:\l0000:\ \ \ MOV\ R1,\ R2\ ;\l|<exit0>0010:\ \ \ @P0\ BRA\ `(.L_x_0)\ ;\l}"]
"k":exit0:e -> ".L_x_0":entry:n [style=solid];
"k":exit0:s -> "BB0":entry:n [style=solid];
node [fontname="Courier",fontsize=10,shape=Mrecord];
"BB0"
[label="{<entry>|<exit0>0020:\ \ \ NOP\ ;\l}"]
"BB0":entry:s -> ".L_x_0":entry:n [style=solid];
node [fontname="Courier",fontsize=10,shape=Mrecord];
".L_x_0"
[label="{<entry>.L_x_0:\l|<exit0>0030:\ \ \ EXIT\ ;\l}"]
}
}
"#;

    #[test]
    fn a_graph_is_edges_between_instructions() {
        let functions = parse(DOT).unwrap();
        let [k] = functions.as_slice() else {
            panic!("{functions:?}")
        };
        assert_eq!(k.name, "k");
        assert_eq!(k.instructions, BTreeSet::from([0, 16, 32, 48]));
        assert_eq!(k.edges, BTreeSet::from([(0, 16), (16, 32), (16, 48), (32, 48)]));
    }

    #[test]
    fn an_edge_to_nowhere_is_an_error() {
        assert!(parse(&DOT.replace("-> \"BB0\"", "-> \"BB9\"")).is_err());
    }
}
