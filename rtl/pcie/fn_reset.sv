// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Resets of the function and of single queues.
//
// A function reset (status 0, FLR, D3hot to D0) halts the DMA engines at a TLP boundary, waits
// until no read is outstanding and every write was taken by the link, then holds `fn_rst_o` while
// the per-queue RAMs are cleared. It does not depend on any block of the data path behaving well.
//
// A queue reset (RING_RESET) pauses the data path at frame boundaries, lets it drain by itself, and
// clears that queue alone; what the other queues hold stays. Resets of several queues are kept
// apart. A read that is never answered ends by its time-out; a transmit frame under way is waited
// for as long as the wire takes.
//
// After power-up everything is cleared once. Clearing takes 4 cycles a queue. What all blocks see
// of it, `fn_rst_o` and `clear_o`, comes from registers, a cycle after the state it belongs to.
module fn_reset
  import ferronic_pkg::*;
  import vq_pkg::*;
#(
  parameter int unsigned NumQueues = 8,
  localparam int unsigned QW = $clog2(NumQueues)
) (
  input  logic      clk_i,
  input  logic      rst_ni,
  input  logic      reset_i,        // pulses
  input  logic      flr_i,
  input  logic      d3_exit_i,
  input  logic      queue_reset_i,
  input  qid_t      queue_reset_q_i,
  input  logic      dma_idle_i,
  input  logic      drained_i,      // nothing in flight anywhere in the data path

  output logic      halt_o,
  output logic      pause_o,
  output logic      fn_rst_o,
  output logic      busy_o,         // writes of the host are void
  input  qid_t      select_q_i,
  output logic      queue_busy_o,   // the selected queue's reset is not done
  output vq_clear_t clear_o,
  output logic [1:0] clear_area_o,
  output logic      idle_o
);
  typedef enum logic [2:0] {StPowerUp, StRun, StHalt, StClear, StPause, StClearQueue} st_e;
  // Blocks say "idle" a few cycles before what they gave away arrives at the next one.
  localparam logic [3:0] Settle = 4'd15;

  st_e             st_q;
  logic            want_reset_q;
  qid_t            queue_q;
  logic [3:0]      quiet_q;
  logic [QidW+1:0] at_q;
  wire all = (at_q == (QidW+2)'(4 * NumQueues - 1));
  wire clear_all = (st_q == StClear) || (st_q == StPowerUp);
  qid_t clear_q;
  assign clear_q = (st_q == StClearQueue) ? queue_q : at_q[QidW+1:2];

  // Queue resets asked for, one bit a queue in RAM, found by a search that goes round. What is
  // asked for goes before what is done. Two rounds after the last question nothing is left.
  logic       asked, asked_we, asked_done;
  logic [1:0] rounds_q;
  qid_t       asked_q;
  assign asked_done = (st_q == StClearQueue) && (at_q[1:0] == 2'd3) && !queue_reset_i;
  assign asked_we   = queue_reset_i || asked_done || clear_all;
  assign asked_q    = queue_reset_i ? queue_reset_q_i : clear_q;
  prim_lutram #(.Width(1), .Depth(NumQueues), .ZeroInit(1'b1)) u_search (
    .clk_i, .we_i(asked_we), .waddr_i(asked_q[QW-1:0]), .wdata_i(queue_reset_i),
    .raddr_i(queue_q[QW-1:0]), .rdata_o(asked)
  );
  prim_lutram #(.Width(1), .Depth(NumQueues), .ZeroInit(1'b1)) u_busy (
    .clk_i, .we_i(asked_we), .waddr_i(asked_q[QW-1:0]), .wdata_i(queue_reset_i),
    .raddr_i(select_q_i[QW-1:0]), .rdata_o(queue_busy_o)
  );
  wire last = (queue_q == qid_t'(NumQueues - 1));

  // They come from all over the card.
  logic dma_idle_q, drained_q;
  always_ff @(posedge clk_i) begin
    dma_idle_q <= dma_idle_i;
    drained_q  <= drained_i;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      st_q         <= StPowerUp;
      want_reset_q <= 1'b0;
      rounds_q     <= '0;
      queue_q      <= '0;
      quiet_q      <= '0;
      at_q         <= '0;
    end else begin
      if (reset_i || flr_i || d3_exit_i) want_reset_q <= 1'b1;
      unique case (st_q)
        StPowerUp, StClear: begin
          at_q <= at_q + 1'b1;
          if (all) begin
            st_q         <= StRun;
            at_q         <= '0;
            want_reset_q <= reset_i || flr_i || d3_exit_i;
          end
        end
        StRun: begin
          quiet_q <= '0;
          if (want_reset_q) st_q <= StHalt;
          else if (asked) st_q <= StPause;
          else begin
            queue_q <= last ? '0 : queue_q + 1'b1;
            if (last) rounds_q <= rounds_q >> 1;
          end
        end
        StHalt: begin
          quiet_q <= dma_idle_q ? quiet_q + 4'd1 : '0;
          if (dma_idle_q && quiet_q == Settle) st_q <= StClear;
        end
        StPause: begin
          quiet_q <= drained_q ? quiet_q + 4'd1 : '0;
          if (want_reset_q) begin
            st_q    <= StHalt;
            quiet_q <= '0;
          end else if (drained_q && quiet_q == Settle) st_q <= StClearQueue;
        end
        StClearQueue: begin
          if (at_q[1:0] != 2'd3) at_q <= at_q + 1'b1;
          if (asked_done) begin
            st_q <= StRun;
            at_q <= '0;
          end
        end
        default: st_q <= StRun;
      endcase
      if (queue_reset_i) rounds_q <= '1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      fn_rst_o      <= 1'b1;
      clear_o.valid <= 1'b1;
    end else begin
      fn_rst_o      <= clear_all;
      clear_o.valid <= clear_all || (st_q == StClearQueue);
    end
    clear_o.q    <= clear_q;
    clear_area_o <= at_q[1:0];
  end
  assign halt_o  = (st_q == StHalt) || clear_all || fn_rst_o;
  assign pause_o = (st_q == StPause) || (st_q == StClearQueue) || (clear_o.valid && !fn_rst_o);
  assign busy_o  = want_reset_q || halt_o;
  assign idle_o  = (st_q == StRun) && !want_reset_q && (rounds_q == '0) && !clear_o.valid;

  logic unused;
  assign unused = ^{select_q_i, asked_q};
endmodule
