// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// What a stream with storage for Depth words must hold to, for proofs of FIFOs and register
// slices: words come out once each, in order and unchanged; none comes out that did not go in; it
// takes words exactly while it has room and offers one exactly while it holds one; what is offered
// stays until it is taken.
//
// One word is followed, chosen at will by `pick_i`, which the solver drives: what holds for it
// holds for every word. Latency of the block under proof: one cycle.
module stream_check_fv #(
  parameter int unsigned Width = 4,
  parameter int unsigned Depth = 4,
  parameter bit          Prompt = 1'b1,  // offers a word exactly while it holds one
  localparam int unsigned CountW = $clog2(Depth + 1)
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic              clr_i,
  input  logic              in_valid_i,
  input  logic              in_ready_i,
  input  logic [Width-1:0]  in_data_i,
  input  logic              out_valid_i,
  input  logic              out_ready_i,
  input  logic [Width-1:0]  out_data_i,
  input  logic              pick_i,
  output logic [CountW-1:0] count_o
);
  wire push = in_valid_i && in_ready_i;
  wire pop  = out_valid_i && out_ready_i;

  logic [CountW-1:0] count_q;             // words in the block
  logic              follow_q;            // the chosen word is in the block
  logic [CountW-1:0] ahead_q;             // words before it
  logic [Width-1:0]  word_q;
  logic              stalled_q;
  logic [Width-1:0]  shown_q;

  wire is_out = follow_q && pop && (ahead_q == '0);
  assign count_o = count_q;

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      count_q   <= '0;
      follow_q  <= 1'b0;
      ahead_q   <= '0;
      word_q    <= '0;
      stalled_q <= 1'b0;
      shown_q   <= '0;
    end else if (clr_i) begin
      count_q   <= '0;
      follow_q  <= 1'b0;
      stalled_q <= 1'b0;
    end else begin
      count_q <= count_q + CountW'(push) - CountW'(pop);
      if (!follow_q && push && pick_i) begin
        follow_q <= 1'b1;
        ahead_q  <= count_q - CountW'(pop);
        word_q   <= in_data_i;
      end else if (is_out) begin
        follow_q <= 1'b0;
      end else if (follow_q && pop) begin
        ahead_q <= ahead_q - 1'b1;
      end
      stalled_q <= out_valid_i && !out_ready_i;
      shown_q   <= out_data_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      TakesWhileRoom: assert (in_ready_i == (count_q < CountW'(Depth)));
      OffersWhatIsHeld: assert (!out_valid_i || (count_q != '0));
      if (Prompt) OffersWhileHeld: assert (out_valid_i || (count_q == '0));
      if (is_out) InOrderUnchanged: assert (out_data_i == word_q);
      if (stalled_q) StaysUntilTaken: assert (out_valid_i && out_data_i == shown_q);
    end
  end
endmodule
