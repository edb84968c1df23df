// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Which transmit queue (an odd number) is served next: a list of queues with work, each at most
// once in it, served from the front and put back at the end (round robin, a frame a turn).
//
// A queue taken from the list is returned by `ret_*`; it goes back to the end when it has work, or
// when a work pulse came since its last return, so that no pulse is lost whatever its timing
// against the look-up. Two bits a queue, in RAM: listed (or being served), and pulsed meanwhile.
// They are cleared after a reset, one queue a cycle; no work comes in that time.
//
// One queue a cycle. A work pulse goes before a return.
`include "ferronic_assert.svh"
module tx_sched
  import ferronic_pkg::*;
#(
  parameter int unsigned QueuePairs = 4
) (
  input  logic clk_i,
  input  logic rst_ni,
  input  logic fn_rst_i,
  output logic idle_o,        // no queue waits

  input  logic work_valid_i,
  input  qid_t work_q_i,
  output qid_t check_q_o,
  input  logic has_work_i,

  output logic next_valid_o,
  output qid_t next_q_o,
  input  logic next_take_i,

  input  logic ret_valid_i,
  output logic ret_ready_o,
  input  qid_t ret_q_i,
  input  logic ret_off_i      // list it again only after a pulse, whatever it has
);
  localparam int unsigned PairW = (QueuePairs > 1) ? $clog2(QueuePairs) : 1;
  localparam int unsigned Depth = 1 << PairW;

  if (QueuePairs < 1 || QueuePairs > 64) begin : g_bad_pairs
    $error("%m: QueuePairs (%0d) must be 1 to 64", QueuePairs);
  end

  typedef struct packed {
    logic pulsed;
    logic listed;
  } state_t;

  logic             clear_q;
  logic [PairW-1:0] clear_pair_q;
  state_t           old_state, new_state;
  logic             state_we, push;
  logic [PairW-1:0] pair, state_pair;

  assign pair        = work_valid_i ? work_q_i[PairW:1] : ret_q_i[PairW:1];
  assign state_pair  = clear_q ? clear_pair_q : pair;
  assign check_q_o   = ret_q_i;
  assign ret_ready_o = !work_valid_i && !clear_q;

  always_comb begin
    state_we  = 1'b0;
    push      = 1'b0;
    new_state = '0;
    if (clear_q) begin
      state_we = 1'b1;
    end else if (work_valid_i) begin
      state_we         = 1'b1;
      push             = !old_state.listed;
      new_state.listed = 1'b1;
      new_state.pulsed = old_state.listed;
    end else if (ret_valid_i) begin
      state_we         = 1'b1;
      push             = old_state.pulsed || (has_work_i && !ret_off_i);
      new_state.listed = push;
    end
  end

  prim_lutram #(.Width($bits(state_t)), .Depth(Depth)) u_state (
    .clk_i,
    .we_i   (state_we),
    .waddr_i(state_pair),
    .wdata_i(new_state),
    .raddr_i(pair),
    .rdata_o(old_state)
  );

  logic             list_ready;
  logic [PairW-1:0] next_pair;
  logic [PairW:0]   list_level;
  prim_fifo #(.Width(PairW), .Depth(Depth)) u_list (
    .clk_i, .rst_ni,
    .clr_i     (fn_rst_i),
    .wr_valid_i(push),
    .wr_ready_o(list_ready),
    .wr_data_i (pair),
    .rd_valid_o(next_valid_o),
    .rd_ready_i(next_take_i),
    .rd_data_o (next_pair),
    .level_o   (list_level)
  );
  assign next_q_o = qid_t'({next_pair, 1'b1});
  assign idle_o   = !next_valid_o && !clear_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      clear_q      <= 1'b1;
      clear_pair_q <= '0;
    end else begin
      if (fn_rst_i) clear_q <= 1'b1;
      else if (clear_pair_q == '1) clear_q <= 1'b0;
      if (clear_q) clear_pair_q <= clear_pair_q + 1'b1;
    end
  end

  // Bits of queue numbers beyond the configured pairs.
  logic unused;
  assign unused = ^{work_q_i, ret_q_i, list_level};

  `FERRONIC_ASSERT(ListHasRoom, !push || list_ready, clk_i, rst_ni)
  `FERRONIC_ASSERT(NoWorkInClear, !(work_valid_i && clear_q), clk_i, rst_ni)
endmodule
