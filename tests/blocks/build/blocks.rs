//! The blocks that are tested. Each line becomes a model of its own: the name by which tests ask
//! for it, the top module, and its parameters. The files it needs are found from the top module.

pub struct Block {
    pub name: &'static str,
    pub top: &'static str,
    pub parameters: &'static [(&'static str, u32)],
}

const fn block(
    name: &'static str,
    top: &'static str,
    parameters: &'static [(&'static str, u32)],
) -> Block {
    Block {
        name,
        top,
        parameters,
    }
}

#[rustfmt::skip]
pub const BLOCKS: &[Block] = &[
    block("prim_fifo", "prim_fifo", &[("Width", 40), ("Depth", 8)]),
    block("prim_skid", "prim_skid", &[("Width", 100)]),
    block("prim_slice", "prim_slice", &[("Width", 100)]),
    block("header_parser", "header_parser", &[]),
    block("dma_write_64", "dma_write", &[("DataW", 64)]),
    block("dma_write_512", "dma_write", &[("DataW", 512)]),
    block("dma_read_64", "dma_read", &[("DataW", 64), ("TimeoutCycles", 1600)]),
    block("dma_read_512", "dma_read", &[("DataW", 512), ("TimeoutCycles", 1600)]),
    block("rx_path_64", "rx_path", &[("DataW", 64), ("RxWaitCycles", 400)]),
    block("rx_path_512", "rx_path", &[("DataW", 512), ("RxWaitCycles", 400)]),
    block("rx_check_64", "rx_check", &[("DataW", 64)]),
    block("rx_check_512", "rx_check", &[("DataW", 512)]),
    block("rx_steer_4", "rx_steer", &[("QueuePairs", 4)]),
    block("rx_steer_64", "rx_steer", &[("QueuePairs", 64), ("Flows", 4096)]),
    block("rx_filter_64", "rx_filter", &[("DataW", 64)]),
    block("rx_filter_512", "rx_filter", &[("DataW", 512), ("Ways", 4)]),
    block("regs_rx", "regs_rx", &[]),
    block("regs_lro", "regs_lro", &[]),
    block("regs_lro_strict", "regs_lro", &[("Relaxed", 0)]),
    block("rx_path_lro_64", "rx_path", &[("DataW", 64), ("RxWaitCycles", 400), ("MaxBuffers", 96), ("LroContexts", 16), ("LroRelaxed", 0)]),
    block("rx_path_lro_relaxed_64", "rx_path", &[("DataW", 64), ("RxWaitCycles", 400), ("MaxBuffers", 96), ("LroContexts", 16)]),
    block("rx_path_lro_512", "rx_path", &[("DataW", 512), ("RxWaitCycles", 400), ("MaxBuffers", 96), ("LroContexts", 16), ("LroRelaxed", 0)]),
    block("rx_path_lro_relaxed_512", "rx_path", &[("DataW", 512), ("RxWaitCycles", 400), ("MaxBuffers", 96), ("LroContexts", 16)]),
    block("rx_path_lro_64_64", "rx_path", &[("DataW", 64), ("MaxBuffers", 96), ("LroContexts", 64)]),
    block("rx_path_lro_512_64", "rx_path", &[("DataW", 512), ("MaxBuffers", 96), ("LroContexts", 64)]),
    block("lro_table_64", "lro_table", &[("DataW", 64), ("Contexts", 4)]),
    block("lro_table_512", "lro_table", &[("DataW", 512), ("Contexts", 16)]),
    block("lro_timer", "lro_timer", &[("Contexts", 16)]),
    block("tx_path_64", "tx_path", &[("DataW", 64), ("QueuePairs", 4)]),
    block("tx_path_512", "tx_path", &[("DataW", 512), ("QueuePairs", 4)]),
    block("tx_sched", "tx_sched", &[("QueuePairs", 16)]),
    block("vq_used_64", "vq_used", &[("DataW", 64), ("NumQueues", 2), ("HoldCycles", 200)]),
    block("vq_used_512", "vq_used", &[("DataW", 512), ("NumQueues", 8), ("HoldCycles", 200)]),
    block("vq_empty", "vq_empty", &[("NumQueues", 8)]),
    block("vq_empty_1", "vq_empty", &[("NumQueues", 2)]),
    block("vq_empty_16", "vq_empty", &[("NumQueues", 32)]),
    block("vq_notify", "vq_notify", &[("NumQueues", 32)]),
    block("vq_walker", "vq_walker", &[("NumQueues", 8), ("Depth", 16), ("IsRx", 1)]),
];
