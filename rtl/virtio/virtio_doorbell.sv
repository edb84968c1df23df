// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Notification region: one doorbell of 4 bytes for each virtqueue. Without NOTIFICATION_DATA a
// write says "look"; with it bits 31:16 carry the available index (virtio 1.2, "Driver
// notifications"). When the driver sets DRIVER_OK, every queue is looked at once, so buffers posted
// earlier are seen.
//
// Each queue has one place for a doorbell that waits: the newest index replaces an older one, and
// "look" is not forgotten. So a doorbell is always taken at once and never depends on the card's
// own reads (PCIe base specification, "Transaction Ordering": posted requests must be accepted).
// Latency three cycles. What is taken from here is offered in every other cycle, by a register.
`include "ferronic_assert.svh"
module virtio_doorbell
  import ferronic_pkg::*;
  import vq_pkg::*;
#(
  parameter int unsigned NumQueues = 8,
  localparam int unsigned QW = $clog2(NumQueues)
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic        fn_rst_i,
  input  vq_clear_t   clear_i,
  input  logic        notif_data_i,
  input  logic        driver_ok_i,
  input  reg_req_t    req_i,
  output reg_rsp_t    rsp_o,
  output logic        db_valid_o,
  input  logic        db_ready_i,
  output qid_t        db_q_o,
  output logic        db_has_idx_o,
  output logic [15:0] db_idx_o,
  output logic        idle_o
);
  logic            ack_q, ok_q, sweep_q, list_ready;
  qid_t            sweep_at_q, set_q;
  logic [QW:0]     level;
  wire  [9:0]      number  = req_i.addr[11:2];
  wire             known   = (number < 10'(NumQueues));
  wire             ring    = req_i.valid && req_i.write && !ack_q && known && |req_i.be &&
                             !fn_rst_i;
  wire             has_idx = notif_data_i && (req_i.be == 4'hf);

  // A queue waits while its two toggles differ: one is turned by setting, the other by taking.
  logic        first_valid, first_ready, first_has;
  qid_t        first_q;
  logic [15:0] first_idx;
  wire  pop   = first_valid && first_ready;
  wire  set   = (sweep_q || ring) && !(pop && first_q == set_q);
  logic set_t, clr_t, set_own, old_has;
  wire  waits = set_t ^ clr_t;
  wire  new_has = !sweep_q && has_idx && (!waits || old_has);
  wire [QW-1:0] sq = set_q[QW-1:0];
  wire [QW-1:0] pq = first_q[QW-1:0];
  assign set_q = sweep_q ? sweep_at_q : qid_t'(number[QW-1:0]);

  wire [QW-1:0] set_wq = fn_rst_i ? clear_i.q[QW-1:0] : sq;
  wire [QW-1:0] clr_wq = fn_rst_i ? clear_i.q[QW-1:0] : pq;
  wire          set_we = set || fn_rst_i;
  prim_lutram #(.Width(1), .Depth(NumQueues)) u_set (
    .clk_i, .we_i(set_we), .waddr_i(set_wq), .wdata_i(!clr_t && !fn_rst_i), .raddr_i(sq),
    .rdata_o(set_t));
  prim_lutram #(.Width(1), .Depth(NumQueues)) u_set_pop (
    .clk_i, .we_i(set_we), .waddr_i(set_wq), .wdata_i(!clr_t && !fn_rst_i), .raddr_i(pq),
    .rdata_o(set_own));
  prim_lutram #(.Width(1), .Depth(NumQueues)) u_clr (
    .clk_i, .we_i(pop || fn_rst_i), .waddr_i(clr_wq), .wdata_i(set_own && !fn_rst_i),
    .raddr_i(sq), .rdata_o(clr_t));
  prim_lutram #(.Width(1), .Depth(NumQueues)) u_has (
    .clk_i, .we_i(set), .waddr_i(sq), .wdata_i(new_has), .raddr_i(sq), .rdata_o(old_has));
  prim_lutram #(.Width(17), .Depth(NumQueues)) u_idx (
    .clk_i, .we_i(set), .waddr_i(sq), .wdata_i({new_has, req_i.wdata[31:16]}), .raddr_i(pq),
    .rdata_o({first_has, first_idx}));

  prim_fifo #(.Width(QidW), .Depth(NumQueues)) u_list (
    .clk_i, .rst_ni, .clr_i(fn_rst_i),
    .wr_valid_i(set && !waits), .wr_ready_o(list_ready), .wr_data_i(set_q),
    .rd_valid_o(first_valid), .rd_ready_i(first_ready), .rd_data_o(first_q), .level_o(level)
  );
  prim_slice #(.Width(QidW + 17)) u_out (
    .clk_i, .rst_ni, .clr_i(fn_rst_i),
    .in_valid_i(first_valid), .in_ready_o(first_ready),
    .in_data_i({first_q, first_has, first_idx}),
    .out_valid_o(db_valid_o), .out_ready_i(db_ready_i),
    .out_data_o({db_q_o, db_has_idx_o, db_idx_o})
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ack_q      <= 1'b0;
      ok_q       <= 1'b0;
      sweep_q    <= 1'b0;
      sweep_at_q <= '0;
    end else begin
      ack_q <= req_i.valid && !ack_q && (!ring || (set && !sweep_q));
      ok_q  <= driver_ok_i;
      if (fn_rst_i) begin
        sweep_q    <= 1'b0;
        sweep_at_q <= '0;
      end else if (driver_ok_i && !ok_q) begin
        sweep_q    <= 1'b1;
        sweep_at_q <= '0;
      end else if (sweep_q && set) begin
        sweep_at_q <= sweep_at_q + 1'b1;
        sweep_q    <= (sweep_at_q != qid_t'(NumQueues - 1));
      end
    end
  end

  assign rsp_o  = '{ack: ack_q, rdata: '0};
  assign idle_o = !first_valid && !db_valid_o && !sweep_q;

  `FERRONIC_ASSERT(ListFits, !(set && !waits) || list_ready, clk_i, rst_ni)

  logic unused;
  assign unused = ^{level, req_i, clear_i, first_q};
endmodule
