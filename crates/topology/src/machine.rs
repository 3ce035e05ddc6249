//! How near CPUs are to each other.
//!
//! From `/sys/devices/system`: which share a core, which share an L3 cache, which belong to a NUMA
//! node, and how far nodes are from each other. Only CPUs of the affinity mask are in it. Where
//! nothing is said each CPU is a core of its own, and all share one cache and one node.

use crate::cpus::{CpuSet, allowed_cpus};
use crate::kernel_text::number;
use crate::root::Root;

/// Cache levels and kinds that a CPU lists; more are not looked at.
const CACHES_MAX: usize = 16;
/// The kernel's distance of a node from itself.
const LOCAL_DISTANCE: u32 = 10;
/// What the kernel assumes between nodes of which nothing is known.
const REMOTE_DISTANCE: u32 = 20;

/// The CPUs that this process may use, and their neighbourhood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// Neighbours stand together: by node, cache, core.
    cpus: Vec<Cpu>,
    nodes: Vec<Node>,
}

/// A CPU, with the numbers of the groups that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cpu {
    /// The kernel's number.
    pub id: u32,
    /// The lowest CPU of its core.
    pub core: u32,
    /// The lowest CPU that shares its L3 cache.
    pub cache: u32,
    /// The index of its node in [`Topology::nodes`].
    pub node: usize,
}

/// A NUMA node with CPUs that this process may use.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Node {
    /// The kernel's number; there may be gaps.
    pub id: u32,
    /// Its CPUs, as far as this process may use them.
    pub cpus: CpuSet,
    /// How far each of [`Topology::nodes`] is, in the kernel's unit: 10 is local.
    pub distances: Vec<u32>,
}

/// How near two CPUs are, nearest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Nearness {
    /// They are threads of one core.
    Core,
    /// They share an L3 cache.
    Cache,
    /// They belong to one node.
    Node,
    /// They belong to nodes with this distance.
    Far(u32),
}

impl Topology {
    /// Reads the system's, or a made-up one.
    #[must_use]
    pub fn read(root: &Root) -> Topology {
        let allowed = online_and_allowed(root);
        let nodes = read_nodes(root, &allowed);
        let node_of = |id| nodes.iter().position(|node| node.cpus.contains(id)).unwrap_or(0);
        let mut cpus: Vec<Cpu> = allowed
            .iter()
            .map(|id| {
                let node = node_of(id);
                let in_node = |set: CpuSet| {
                    set.iter().find(|cpu| nodes[node].cpus.contains(*cpu)).unwrap_or(id)
                };
                let whole_node = || nodes[node].cpus.clone();
                Cpu {
                    id,
                    core: in_node(siblings(root, id).unwrap_or_else(|| [id].into_iter().collect())),
                    cache: in_node(sharing_l3(root, id).unwrap_or_else(whole_node)),
                    node,
                }
            })
            .collect();
        cpus.sort_by_key(|cpu| (cpu.node, cpu.cache, cpu.core, cpu.id));
        Topology { cpus, nodes }
    }

    /// The CPUs, neighbours together; at least one.
    #[must_use]
    pub fn cpus(&self) -> &[Cpu] {
        &self.cpus
    }

    /// The nodes with CPUs, by number; at least one.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// How near two CPUs of this topology are.
    #[must_use]
    pub fn nearness(&self, one: Cpu, other: Cpu) -> Nearness {
        if one.node != other.node {
            let distances = self.nodes.get(one.node).map(|node| node.distances.as_slice());
            let distance = distances.and_then(|all| all.get(other.node)).copied();
            return Nearness::Far(distance.unwrap_or(REMOTE_DISTANCE));
        }
        match (one.core == other.core, one.cache == other.cache) {
            (true, _) => Nearness::Core,
            (_, true) => Nearness::Cache,
            _ => Nearness::Node,
        }
    }
}

/// At least one CPU: whoever asks runs on one.
fn online_and_allowed(root: &Root) -> CpuSet {
    let online = read_set(root, "/sys/devices/system/cpu/online");
    let allowed = allowed_cpus(root).or_else(|| online.clone());
    let allowed = allowed.unwrap_or_else(|| [0].into_iter().collect());
    let both = |online: CpuSet| allowed.iter().filter(|cpu| online.contains(*cpu)).collect();
    let both: CpuSet = online.map_or_else(|| allowed.clone(), both);
    if both.is_empty() { allowed } else { both }
}

/// The nodes that have some of `allowed`; CPUs of which no node says anything go to the first.
fn read_nodes(root: &Root, allowed: &CpuSet) -> Vec<Node> {
    const FOLDER: &str = "/sys/devices/system/node";
    let names = root.names(FOLDER);
    let mut ids: Vec<u32> =
        names.iter().filter_map(|name| name.strip_prefix("node")?.parse().ok()).collect();
    ids.sort_unstable();
    ids.dedup();
    // A line of distances has one for each node that is online.
    let online = read_set(root, format!("{FOLDER}/online"));
    let columns: Vec<u32> = match &online {
        Some(online) => online.iter().collect(),
        None => ids.clone(),
    };
    let mut left = allowed.clone();
    let mut found: Vec<(Node, Vec<u32>)> = Vec::new();
    for id in ids {
        let Some(set) = read_set(root, format!("{FOLDER}/node{id}/cpulist")) else { continue };
        // A CPU has one node, whatever garbled files say.
        let (cpus, rest): (Vec<u32>, Vec<u32>) = left.iter().partition(|cpu| set.contains(*cpu));
        if !cpus.is_empty() {
            left = rest.into_iter().collect();
            let line = root.read(format!("{FOLDER}/node{id}/distance")).unwrap_or_default();
            let line = parse_distances(&line);
            let node = Node { id, cpus: cpus.into_iter().collect(), distances: Vec::new() };
            found.push((node, line));
        }
    }
    if found.is_empty() {
        let distances = Vec::new();
        found.push((Node { id: 0, cpus: CpuSet::default(), distances }, Vec::new()));
    }
    left.iter().for_each(|cpu| found[0].0.cpus.insert(cpu));
    let kept: Vec<u32> = found.iter().map(|(node, _)| node.id).collect();
    let with_distances = found.into_iter().map(|(node, line)| {
        let distance = |other: &u32| match columns.iter().position(|id| id == other) {
            _ if *other == node.id => LOCAL_DISTANCE,
            // A line of another length is garbled.
            Some(column) if line.len() == columns.len() => line[column].max(LOCAL_DISTANCE),
            _ => REMOTE_DISTANCE,
        };
        let distances = kept.iter().map(distance).collect();
        Node { distances, ..node }
    });
    with_distances.collect()
}

/// None at all if one of them is garbled.
fn parse_distances(line: &str) -> Vec<u32> {
    let all = line.split_whitespace().map(|word| u32::try_from(number(word.as_bytes())?).ok());
    all.collect::<Option<Vec<u32>>>().unwrap_or_default()
}

/// The threads of a CPU's core.
fn siblings(root: &Root, cpu: u32) -> Option<CpuSet> {
    let folder = format!("/sys/devices/system/cpu/cpu{cpu}/topology");
    let list = ["core_cpus_list", "thread_siblings_list"];
    list.iter().find_map(|name| read_set(root, format!("{folder}/{name}")))
}

/// The CPUs that share a CPU's L3 cache.
fn sharing_l3(root: &Root, cpu: u32) -> Option<CpuSet> {
    (0..CACHES_MAX).find_map(|index| {
        let folder = format!("/sys/devices/system/cpu/cpu{cpu}/cache/index{index}");
        let level = root.read(format!("{folder}/level"))?;
        let set = read_set(root, format!("{folder}/shared_cpu_list"))?;
        (number(level.as_bytes()) == Some(3)).then_some(set)
    })
}

/// A file with a list of numbers; an empty list is none.
fn read_set(root: &Root, path: impl AsRef<std::path::Path>) -> Option<CpuSet> {
    CpuSet::parse(&root.read(path)?).filter(|set| !set.is_empty())
}
