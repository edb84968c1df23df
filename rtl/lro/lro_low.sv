// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Low water: a frame for a queue in which few buffers are left first has the oldest unit closed
// that is held for this queue, one a frame, so that the driver gets buffers back before it has to
// wait for a frame that finds none.
//
// While a frame is at hand the number of buffers of its queue is compared with the mark, with that
// of the cycle before unless `AtOnce`. When it is below, the unit is looked for and offered with
// `due_o` until it is closed; the frame waits (`busy_o`). A frame that is not IP may be gone before
// the number is known: then the unit is closed behind it, or with the next frame.
//
// Costs nothing above the mark; below it, four cycles and one for each older unit beside the
// closing.
//
// Invariants: only a unit that is open is offered.
`include "ferronic_assert.svh"
module lro_low
  import vq_pkg::*;
#(
  parameter int unsigned Contexts = 16,
  parameter bit          AtOnce = 1'b0,  // a frame may leave five cycles after it came, not six
  localparam int unsigned CtxW = $clog2(Contexts)
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic                fn_rst_i,
  input  logic [6:0]          mark_i,    // 0: never

  input  logic                start_i,   // a frame comes; from the second cycle after, what is said
  input  logic                take_i,    // of its queue is there; it leaves
  input  vq_ptr_t             count_i,   // buffers in its queue
  input  logic [Contexts-1:0] open_i,
  input  logic [Contexts-1:0] of_q_i,    // those of its queue
  input  logic                closed_i,
  input  logic [CtxW-1:0]     closed_ctx_i,

  output logic                find_o,    // the oldest of those is looked for
  input  logic                found_i,
  input  logic [CtxW-1:0]     at_i,

  output logic                busy_o,    // the frame has to wait
  output logic                idle_o,
  output logic                due_o,
  output logic [CtxW-1:0]     ctx_o
);
  // The highest bit: the frame waits.
  typedef enum logic [2:0] {
    StRest  = 3'b000,  // nothing is asked for this frame any more
    StAsk   = 3'b001,  // its queue is known
    StWatch = 3'b010,  // the count is of its queue
    StFind  = 3'b100,
    StDue   = 3'b101
  } st_e;
  st_e             st_q;
  logic            start_q, take_q, few_q;
  logic [CtxW-1:0] ctx_q;

  wire few_now = (count_i < vq_ptr_t'(mark_i));
  wire few     = AtOnce ? few_now : few_q;

  always_ff @(posedge clk_i) begin
    few_q <= few_now;
    if (st_q == StFind) ctx_q <= at_i;
    if (!rst_ni || fn_rst_i) begin
      st_q    <= StRest;
      start_q <= 1'b0;
      take_q  <= 1'b0;
    end else begin
      start_q <= start_i;
      take_q  <= take_i;
      unique case (st_q)
        StAsk:   st_q <= StWatch;
        StWatch: begin
          // What it takes itself does not count.
          if (take_q) st_q <= StRest;
          else if (few && of_q_i != '0) st_q <= StFind;
        end
        StFind: begin
          if (found_i && !closed_i) st_q <= StDue;
          else if (of_q_i == '0) st_q <= StRest;
        end
        StDue:   if (closed_i && closed_ctx_i == ctx_q) st_q <= StRest;
        default: ;
      endcase
      // The queue is that of the next frame then.
      if (start_q && st_q != StDue) st_q <= StAsk;
    end
  end
  assign find_o = (st_q == StFind);
  assign busy_o = st_q[2];
  assign idle_o = (st_q == StRest) && !start_q;
  assign due_o  = (st_q == StDue);
  assign ctx_o  = ctx_q;

  `FERRONIC_ASSERT(OpenOnesAreOffered, !due_o || open_i[ctx_q], clk_i, rst_ni)
endmodule
