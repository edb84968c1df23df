// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Cuts a DMA request into pieces that one TLP may carry: at most `max_bytes_i` from the first DW on
// and none across a 4 KiB boundary. Shared by the read and the write engine. Lengths and RAM
// addresses of pieces count from the DW of their first byte on, as payloads do.
//
// Latency four cycles from a request to its first piece, throughput one piece in two cycles, the
// first of a request one cycle later; `in_ready_o` comes from a register. While `void_i` is high
// the rest of the request becomes one piece with `void`, so that it still ends in order. Out of
// the last piece of each request comes `last`.
`include "ferronic_assert.svh"
module dma_split #(
  parameter int unsigned UserW = 1  // carried along with each piece
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             void_i,
  input  logic [12:0]      max_bytes_i,  // 128 to 4096, a power of two

  input  logic             in_valid_i,
  output logic             in_ready_o,
  input  logic [63:0]      in_addr_i,
  input  logic [15:0]      in_len_i,
  input  logic [15:0]      in_ptr_i,
  input  logic [UserW-1:0] in_user_i,

  output logic             out_valid_o,
  input  logic             out_ready_i,
  output logic [63:2]      out_addr_o,
  output logic [1:0]       out_lead_o,   // bytes of the first DW that are not asked for
  output logic [12:0]      out_len_o,    // 1 to 4096, those included
  output logic [15:0]      out_ptr_o,    // of byte 0 of the first DW
  output logic [UserW-1:0] out_user_o,
  output logic             out_last_o,
  output logic             out_void_o,

  output logic             idle_o
);
  typedef enum logic [1:0] {StIdle, StCalc, StEmit} state_e;
  state_e state_q;

  // The request stays as it is: pieces are found by what is done, so that nothing is loaded from
  // two places.
  logic [63:0]      addr_q;
  logic [15:0]      ptr_q;
  logic [16:0]      len_q, done_q, rest_q;  // bytes from the first DW on
  logic [UserW-1:0] user_q;
  logic [12:2]      room_q;
  logic             first_q;

  // Room for this piece: what one TLP may carry, a power of two, or less if the page ends in it.
  logic [11:7]  mask;
  logic [11:2]  low;
  logic         carry;
  wire  [63:12] high = addr_q[63:12] + {47'b0, done_q[16:12]} + 52'(carry);
  for (genvar b = 7; b < 12; b++) begin : g_mask
    assign mask[b] = |max_bytes_i[12:b+1];
  end
  assign {carry, low} = {1'b0, addr_q[11:2]} + {1'b0, done_q[11:2]};
  wire          near  = &(low[11:7] | mask);
  wire  [12:2]  room  = {1'b0, (~low | {10{!near}}) & {mask, 5'h1f}} + 11'd1;

  logic unused_max;
  assign unused_max = ^max_bytes_i[7:0];

  wire        fits  = (rest_q <= {4'b0, room_q, 2'b00});
  wire        last  = fits || void_i;

  logic             out_valid_q, out_last_q, out_void_q;
  logic [63:2]      out_addr_q;
  logic [1:0]       out_lead_q;
  logic [12:0]      out_len_q;
  logic [15:0]      out_ptr_q;
  logic [UserW-1:0] out_user_q;

  // Not with the cycle in which a piece is taken, which is known late: pieces are two cycles apart.
  wire        emit  = (state_q == StEmit) && !out_valid_q;

  // The next request waits here, so that ready does not depend on what happens further down.
  logic             next_valid_q;
  logic [63:0]      next_addr_q;
  logic [15:0]      next_len_q, next_ptr_q;
  logic [UserW-1:0] next_user_q;
  // Not with the last piece of the one before: that it is the last is known late.
  wire              load = next_valid_q && (state_q == StIdle);

  assign in_ready_o  = !next_valid_q;
  assign out_valid_o = out_valid_q;
  assign out_addr_o  = out_addr_q;
  assign out_lead_o  = out_lead_q;
  assign out_len_o   = out_len_q;
  assign out_ptr_o   = out_ptr_q;
  assign out_user_o  = out_user_q;
  assign out_last_o  = out_last_q;
  assign out_void_o  = out_void_q;
  assign idle_o      = (state_q == StIdle) && !out_valid_q && !next_valid_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q      <= StIdle;
      out_valid_q  <= 1'b0;
      next_valid_q <= 1'b0;
    end else begin
      unique case (state_q)
        StIdle:  if (load) state_q <= StCalc;
        StCalc:  state_q <= StEmit;
        StEmit:  if (emit) state_q <= last ? StIdle : StCalc;
        default: state_q <= StIdle;
      endcase
      if (!next_valid_q) next_valid_q <= in_valid_i;
      else if (load) next_valid_q <= 1'b0;
      if (emit) out_valid_q <= 1'b1;
      else if (out_ready_i) out_valid_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    rest_q <= len_q - done_q;
    room_q <= room;
    if (!next_valid_q) begin
      next_addr_q <= in_addr_i;
      next_len_q  <= in_len_i;
      next_ptr_q  <= in_ptr_i;
      next_user_q <= in_user_i;
    end
    if (load) begin
      addr_q <= next_addr_q;
      len_q  <= {1'b0, next_len_q} + {15'b0, next_addr_q[1:0]};
      ptr_q  <= next_ptr_q - {14'b0, next_addr_q[1:0]};
      user_q <= next_user_q;
    end
    if (load) done_q <= '0;
    else if (emit) done_q <= done_q + {4'b0, room_q, 2'b00};
    if (load) first_q <= 1'b1;
    else if (emit) first_q <= 1'b0;
    if (emit) begin
      out_addr_q <= {high, low};
      out_lead_q <= first_q ? addr_q[1:0] : 2'b00;
      out_len_q  <= fits ? rest_q[12:0] : {room_q, 2'b00};
      out_ptr_q  <= ptr_q + done_q[15:0];
      out_user_q <= user_q;
      out_last_q <= last;
      out_void_q <= void_i;
    end
  end

  `FERRONIC_ASSERT_STABLE(PieceStable, out_valid_o, out_ready_i,
    ({out_addr_o, out_lead_o, out_len_o, out_ptr_o, out_user_o, out_last_o, out_void_o}),
    clk_i, rst_ni)
  `FERRONIC_ASSERT(LengthKnown, !(in_valid_i && in_len_i == '0), clk_i, rst_ni)
endmodule
