// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// The PCIe side of the card: everything between the TLP channels of the link and the blocks that
// move frames. Configuration space, BAR decoding, DMA reads and writes, MSI-X and the ordering
// between them.
//
// Halting: while `halt_i` is high no new TLP of a DMA client is begun; reads that were not issued
// complete with `err`, write commands and control writes are swallowed (with their `done` and
// `ready`), interrupts are dropped. `idle_o` then rises when no tag is outstanding and every posted
// TLP was taken by the link. No TLP is ever cut. Bus master enable off, or D3hot, acts like
// `halt_i` on the DMA clients.
//
// Ordering: a read or a completion is offered to the link only after all posted TLPs that were
// accepted before it (done_o of dma_write, ctl_wr_ready_o with ctl_wr_last_i) were taken by it.
module pcie_endpoint
  import ferronic_pkg::*;
#(
  parameter int unsigned DataW = 64,
  parameter int unsigned NumVectors = 9,          // MSI-X table size
  parameter int unsigned TimeoutCycles = 1250000, // completion timeout, 10 ms at 125 MHz
  localparam int unsigned Lanes = DataW / 8,
  localparam int unsigned WordW = 16 - $clog2(Lanes)
) (
  input  logic             clk_i,
  input  logic             rst_ni,

  // Link, as in ferronic_core.
  input  logic             rq_valid_i,
  output logic             rq_ready_o,
  input  logic             rq_sop_i,
  input  logic             rq_eop_i,
  input  logic [127:0]     rq_hdr_i,
  input  logic [DataW-1:0] rq_data_i,

  input  logic             rc_valid_i,
  output logic             rc_ready_o,
  input  logic             rc_sop_i,
  input  logic             rc_eop_i,
  input  logic [127:0]     rc_hdr_i,
  input  logic [DataW-1:0] rc_data_i,

  output logic             pt_valid_o,
  input  logic             pt_ready_i,
  output logic             pt_sop_o,
  output logic             pt_eop_o,
  output logic [127:0]     pt_hdr_o,
  output logic [DataW-1:0] pt_data_o,

  output logic             np_valid_o,
  input  logic             np_ready_i,
  output logic [127:0]     np_hdr_o,

  output logic             cc_valid_o,
  input  logic             cc_ready_i,
  output logic             cc_sop_o,
  output logic             cc_eop_o,
  output logic [127:0]     cc_hdr_o,
  output logic [DataW-1:0] cc_data_o,

  // Function reset and halt. `fn_rst_i` only while `idle_o`. While `fn_busy_i` is high memory
  // requests of the host wait; configuration requests that came before them are served.
  input  logic             halt_i,
  output logic             idle_o,
  input  logic             fn_rst_i,
  input  logic             fn_busy_i,
  output logic             flr_o,        // pulse: function level reset was asked for
  output logic             d3_exit_o,    // pulse: D3hot to D0, resets the function too
  output logic             d3hot_o,      // level: the function is in D3hot

  // Simulation time: `quiet_o` when nothing here will move by itself but the completion timeout,
  // which, if `timeout_armed_o`, is `timeout_left_o` cycles away. `skip_i` shortens it.
  output logic             quiet_o,
  output logic             timeout_armed_o,
  output logic [31:0]      timeout_left_o,
  input  logic [63:0]      skip_i,

  // DMA reads: two clients, one RAM write bus. Lane l is written at word waddr + winc[l].
  input  logic             ctl_req_valid_i,
  output logic             ctl_req_ready_o,
  input  dma_rd_req_t      ctl_req_i,
  output dma_rd_done_t     ctl_done_o,
  input  logic             tx_req_valid_i,
  output logic             tx_req_ready_o,
  input  dma_rd_req_t      tx_req_i,
  output dma_rd_done_t     tx_done_o,
  output logic [Lanes-1:0] ram_we_o,
  output dma_dst_e         ram_dst_o,
  output logic [WordW-1:0] ram_waddr_o,
  output logic [Lanes-1:0] ram_winc_o,
  output logic [DataW-1:0] ram_wdata_o,

  // DMA writes from the receive RAM; read data one cycle after rx_ram_re_o, held until the next,
  // unrotated: lane l from word raddr + rinc[l].
  input  logic             wr_cmd_valid_i,
  output logic             wr_cmd_ready_o,
  input  dma_wr_cmd_t      wr_cmd_i,
  output logic             wr_done_o,
  output logic             rx_ram_re_o,
  output logic [WordW-1:0] rx_ram_raddr_o,
  output logic [Lanes-1:0] rx_ram_rinc_o,
  input  logic [DataW-1:0] rx_ram_rdata_i,

  // Ready-made posted writes (used rings, avail_event). One beat at a time, header with the first.
  input  logic             ctl_wr_valid_i,
  output logic             ctl_wr_ready_o,
  input  ctl_wr_hdr_t      ctl_wr_hdr_i,
  input  logic             ctl_wr_last_i,
  input  logic [DataW-1:0] ctl_wr_data_i,

  // Register accesses in BAR0, all but the MSI-X table and PBA (0x4000 to 0x5fff), which are here.
  output reg_req_t         reg_req_o,
  input  reg_rsp_t         reg_rsp_i,

  // Interrupts: taken when irq_i.valid && irq_ready_o. Ask after the data writes were accepted.
  input  irq_req_t         irq_i,
  output logic             irq_ready_o,

  // State that others want to know.
  output logic             bus_master_o,
  output logic             msix_enable_o,

  // One-cycle error events, for counters.
  output logic             ev_unexpected_o, // completion that fits no outstanding request
  output logic             ev_cpl_err_o,    // read answered by UR, CA or without data
  output logic             ev_poisoned_o,   // completion or request with poisoned data
  output logic             ev_timeout_o,    // read not answered in time
  output logic             ev_bad_req_o,    // request answered by UR/CA, or dropped if posted
  output logic             ev_irq_o         // an MSI-X message was sent to the link
);
endmodule
