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
// `halt_i` on the DMA clients. Halting begins and ends one cycle after `halt_i`; clients must not
// ask for anything in the first cycle without it.
//
// Ordering: a read or a completion is offered to the link only after all posted TLPs that were
// accepted before it (done_o of dma_write, ctl_wr_ready_o with ctl_wr_last_i) were taken by it.
module pcie_endpoint
  import ferronic_pkg::*;
  import pcie_pkg::*;
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

  // Function reset and halt. `fn_rst_i` only while `idle_o`. While `fn_busy_i` is high the host's
  // memory writes are void, but for the MSI-X table; reads are served.
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
  output logic             drained_o,       // no DMA under way; register accesses do not count
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
  output logic             ev_irq_o,        // an MSI-X message was sent to the link
  output logic             ev_swallowed_o   // a write was lost because bus mastering is off
);

  localparam int unsigned Tags = (DataW >= 256) ? 64 : 32;

  // ---------------------------------------------------------------- configuration space, target
  logic        cfg_wr, win_hit, win_valid;
  logic [11:2] cfg_addr;
  logic [3:0]  cfg_be, win_be;
  logic [31:0] cfg_wdata, cfg_rdata;
  logic [15:0] win_addr, requester;
  logic        mem_enable, bus_master, ext_tag, timeout_off, msix_enable, msix_mask;
  logic [63:16] bar;
  logic [12:0] max_payload, max_read;
  logic        rd_ev_ur, rd_ev_ca, rd_ev_poisoned, tgt_ev_ur, tgt_ev_ca, tgt_ev_poisoned;
  logic        rd_idle, wr_idle, arb_idle, np_idle, tgt_idle, msix_idle, rd_quiet;
  logic [3:0]  in_flight;
  logic        retired;
  reg_req_t    tgt_req, msix_req;
  reg_rsp_t    tgt_rsp, msix_rsp;

  pcie_config_space #(
    .NumVectors(NumVectors),
    .ExtTags   (Tags > 32)
  ) u_config (
    .clk_i,
    .rst_ni,
    .wr_i         (cfg_wr),
    .addr_i       (cfg_addr),
    .be_i         (cfg_be),
    .wdata_i      (cfg_wdata),
    .rdata_o      (cfg_rdata),
    .win_hit_o    (win_hit),
    .win_valid_o  (win_valid),
    .win_addr_o   (win_addr),
    .win_be_o     (win_be),
    .ev_rx_ur_i   (rd_ev_ur),
    .ev_rx_ca_i   (rd_ev_ca),
    .ev_poisoned_i(ev_poisoned_o),
    .ev_error_i   (ev_unexpected_o || ev_timeout_o),
    .ev_tx_ur_i   (tgt_ev_ur),
    .ev_tx_ca_i   (tgt_ev_ca),
    .pending_i    (!rd_idle),
    .mem_enable_o (mem_enable),
    .bar_o        (bar),
    .bus_master_o (bus_master),
    .max_payload_o(max_payload),
    .max_read_o   (max_read),
    .ext_tag_o    (ext_tag),
    .timeout_off_o(timeout_off),
    .msix_enable_o(msix_enable),
    .msix_mask_o  (msix_mask),
    .d3hot_o,
    .flr_o,
    .d3_exit_o
  );

  pcie_target #(.DataW(DataW)) u_target (
    .clk_i,
    .rst_ni,
    .fn_busy_i,
    .idle_o       (tgt_idle),
    .rq_valid_i,
    .rq_ready_o,
    .rq_sop_i,
    .rq_eop_i,
    .rq_hdr_i,
    .rq_data_i,
    .in_flight_i  (in_flight),
    .retired_i    (retired),
    .cc_valid_o,
    .cc_ready_i,
    .cc_sop_o,
    .cc_eop_o,
    .cc_hdr_o,
    .cc_data_o,
    .requester_o  (requester),
    .mem_enable_i (mem_enable),
    .bar_i        (bar),
    .cfg_wr_o     (cfg_wr),
    .cfg_addr_o   (cfg_addr),
    .cfg_be_o     (cfg_be),
    .cfg_wdata_o  (cfg_wdata),
    .cfg_rdata_i  (cfg_rdata),
    .win_hit_i    (win_hit),
    .win_valid_i  (win_valid),
    .win_addr_i   (win_addr),
    .win_be_i     (win_be),
    .reg_req_o    (tgt_req),
    .reg_rsp_i    (tgt_rsp),
    .ev_ur_o      (tgt_ev_ur),
    .ev_ca_o      (tgt_ev_ca),
    .ev_poisoned_o(tgt_ev_poisoned)
  );

  // 0x4000 to 0x5fff is answered here.
  wire to_msix = (tgt_req.addr[15:13] == 3'b010);
  always_comb begin
    msix_req        = tgt_req;
    msix_req.valid  = tgt_req.valid && to_msix;
    reg_req_o       = tgt_req;
    reg_req_o.valid = tgt_req.valid && !to_msix;
    tgt_rsp         = to_msix ? msix_rsp : reg_rsp_i;
  end

  // ---------------------------------------------------------------- DMA
  // One cycle late, which `idle_o` makes up for.
  logic halt_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) halt_q <= 1'b1;
    else halt_q <= halt_i || !bus_master;
  end

  logic     np_in_valid, np_in_ready;
  mem_req_t np_in_req, np_out_req;
  logic [7:0] np_in_tag, np_out_tag;

  dma_read #(
    .DataW        (DataW),
    .Tags         (Tags),
    .TimeoutCycles(TimeoutCycles)
  ) u_read (
    .clk_i,
    .rst_ni,
    .halt_i         (halt_q),
    .max_read_i     (max_read),
    .ext_tag_i      (ext_tag),
    .timeout_off_i  (timeout_off),
    .requester_i    (requester),
    .idle_o         (rd_idle),
    .ctl_req_valid_i,
    .ctl_req_ready_o,
    .ctl_req_i,
    .ctl_done_o,
    .tx_req_valid_i,
    .tx_req_ready_o,
    .tx_req_i,
    .tx_done_o,
    .ram_we_o,
    .ram_dst_o,
    .ram_waddr_o,
    .ram_winc_o,
    .ram_wdata_o,
    .np_valid_o     (np_in_valid),
    .np_ready_i     (np_in_ready),
    .np_req_o       (np_in_req),
    .np_tag_o       (np_in_tag),
    .np_pending_i   (!np_idle),
    .rc_valid_i,
    .rc_ready_o,
    .rc_sop_i,
    .rc_eop_i,
    .rc_hdr_i,
    .rc_data_i,
    .quiet_o        (rd_quiet),
    .timeout_armed_o,
    .timeout_left_o,
    .skip_i,
    .ev_unexpected_o,
    .ev_ur_o        (rd_ev_ur),
    .ev_ca_o        (rd_ev_ca),
    .ev_poisoned_o  (rd_ev_poisoned),
    .ev_timeout_o
  );

  pcie_order #(.Width($bits(mem_req_t) + 8)) u_np_order (
    .clk_i,
    .rst_ni,
    .in_flight_i(in_flight),
    .retired_i  (retired),
    .idle_o     (np_idle),
    .in_valid_i (np_in_valid),
    .in_ready_o (np_in_ready),
    .in_data_i  ({np_in_req, np_in_tag}),
    .out_valid_o(np_valid_o),
    .out_ready_i(np_ready_i),
    .out_data_o ({np_out_req, np_out_tag})
  );
  assign np_hdr_o = mem_header(1'b0, np_out_req, requester, np_out_tag);

  logic             dma_valid, dma_ready, dma_sop, dma_eop;
  mem_req_t         dma_req;
  logic [DataW-1:0] dma_data;

  dma_write #(.DataW(DataW)) u_write (
    .clk_i,
    .rst_ni,
    .halt_i       (halt_q),
    .idle_o       (wr_idle),
    .max_payload_i(max_payload),
    .cmd_valid_i  (wr_cmd_valid_i),
    .cmd_ready_o  (wr_cmd_ready_o),
    .cmd_i        (wr_cmd_i),
    .done_o       (wr_done_o),
    .ram_re_o     (rx_ram_re_o),
    .ram_raddr_o  (rx_ram_raddr_o),
    .ram_rinc_o   (rx_ram_rinc_o),
    .ram_rdata_i  (rx_ram_rdata_i),
    .tlp_valid_o  (dma_valid),
    .tlp_ready_i  (dma_ready),
    .tlp_sop_o    (dma_sop),
    .tlp_eop_o    (dma_eop),
    .tlp_req_o    (dma_req),
    .tlp_data_o   (dma_data)
  );

  // ---------------------------------------------------------------- interrupts, posted channel
  logic        msg_valid, msg_ready;
  logic [63:2] msg_addr;
  logic [31:0] msg_data;

  msix #(.NumVectors(NumVectors)) u_msix (
    .clk_i,
    .rst_ni,
    .fn_rst_i,
    .clear_i     (flr_o || d3_exit_o),
    .halt_i,
    .enable_i    (msix_enable),
    .mask_i      (msix_mask),
    .bus_master_i(bus_master),
    .idle_o      (msix_idle),
    .reg_req_i   (msix_req),
    .reg_rsp_o   (msix_rsp),
    .irq_i,
    .irq_ready_o,
    .msg_valid_o (msg_valid),
    .msg_ready_i (msg_ready),
    .msg_addr_o  (msg_addr),
    .msg_data_o  (msg_data),
    .ev_irq_o
  );

  pcie_posted_arb #(.DataW(DataW)) u_posted (
    .clk_i,
    .rst_ni,
    .halt_i      (halt_q),
    .fn_rst_i,
    .requester_i (requester),
    .idle_o      (arb_idle),
    .in_flight_o (in_flight),
    .retired_o   (retired),
    .msix_valid_i(msg_valid),
    .msix_ready_o(msg_ready),
    .msix_addr_i (msg_addr),
    .msix_data_i (msg_data),
    .ctl_valid_i (ctl_wr_valid_i),
    .ctl_ready_o (ctl_wr_ready_o),
    .ctl_hdr_i   (ctl_wr_hdr_i),
    .ctl_last_i  (ctl_wr_last_i),
    .ctl_data_i  (ctl_wr_data_i),
    .dma_valid_i (dma_valid),
    .dma_ready_o (dma_ready),
    .dma_sop_i   (dma_sop),
    .dma_eop_i   (dma_eop),
    .dma_req_i   (dma_req),
    .dma_data_i  (dma_data),
    .pt_valid_o,
    .pt_ready_i,
    .pt_sop_o,
    .pt_eop_o,
    .pt_hdr_o,
    .pt_data_o
  );

  // ---------------------------------------------------------------- state and events
  assign idle_o  = rd_idle && np_idle && wr_idle && arb_idle && !msg_valid && (halt_q || !halt_i);
  // Bus mastering is off and somebody writes all the same: the write is lost. A cycle late.
  always_ff @(posedge clk_i) begin
    if (!rst_ni) ev_swallowed_o <= 1'b0;
    else ev_swallowed_o <= !bus_master && !halt_i && (wr_cmd_valid_i || ctl_wr_valid_i);
  end

  assign drained_o = rd_idle && np_idle && wr_idle && arb_idle && msix_idle;
  assign quiet_o = rd_quiet && np_idle && wr_idle && arb_idle && tgt_idle && msix_idle;

  assign bus_master_o  = bus_master;
  assign msix_enable_o = msix_enable;
  assign ev_cpl_err_o  = rd_ev_ur || rd_ev_ca;
  assign ev_poisoned_o = rd_ev_poisoned || tgt_ev_poisoned;
  assign ev_bad_req_o  = tgt_ev_ur || tgt_ev_ca;
endmodule
