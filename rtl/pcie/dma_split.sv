// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Cuts a DMA request into pieces that one TLP may carry: at most `max_bytes_i` from the first DW on
// and none across a 4 KiB boundary. Shared by the read and the write engine.
//
// Latency four cycles from a request to its first piece, throughput one piece in two cycles;
// `in_ready_o` comes from a register. While
// `void_i` is high the rest of the request becomes one piece with `void`, so that it still ends in
// order. Out of the last piece of each request comes `last`.
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
  output logic [63:0]      out_addr_o,
  output logic [12:0]      out_len_o,    // 1 to 4096
  output logic [15:0]      out_ptr_o,
  output logic [UserW-1:0] out_user_o,
  output logic             out_last_o,
  output logic             out_void_o,

  output logic             idle_o
);
  typedef enum logic [1:0] {StIdle, StCalc, StEmit} state_e;
  state_e state_q;

  logic [63:0]      addr_q;
  logic [15:0]      len_q, ptr_q;
  logic [UserW-1:0] user_q;
  logic [12:0]      room_q;

  // Room for this piece: to the end of the page, and what one TLP may carry.
  wire [12:0] to_page = 13'h1000 - {1'b0, addr_q[11:0]};
  wire [12:0] to_max  = max_bytes_i - {11'b0, addr_q[1:0]};

  wire        fits  = (len_q <= {3'b0, room_q});
  wire [12:0] piece = fits ? len_q[12:0] : room_q;
  wire        last  = fits || void_i;

  logic             out_valid_q, out_last_q, out_void_q;
  logic [63:0]      out_addr_q;
  logic [12:0]      out_len_q;
  logic [15:0]      out_ptr_q;
  logic [UserW-1:0] out_user_q;

  wire out_free = !out_valid_q || out_ready_i;
  wire emit     = (state_q == StEmit) && out_free;

  // The next request waits here, so that ready does not depend on what happens further down.
  logic             next_valid_q;
  logic [63:0]      next_addr_q;
  logic [15:0]      next_len_q, next_ptr_q;
  logic [UserW-1:0] next_user_q;
  wire              load = next_valid_q && ((state_q == StIdle) || (emit && last));

  assign in_ready_o  = !next_valid_q;
  assign out_valid_o = out_valid_q;
  assign out_addr_o  = out_addr_q;
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
        StEmit:  if (emit) state_q <= (!last || load) ? StCalc : StIdle;
        default: state_q <= StIdle;
      endcase
      if (!next_valid_q) next_valid_q <= in_valid_i;
      else if (load) next_valid_q <= 1'b0;
      if (emit) out_valid_q <= 1'b1;
      else if (out_ready_i) out_valid_q <= 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    room_q <= (to_page < to_max) ? to_page : to_max;
    if (!next_valid_q) begin
      next_addr_q <= in_addr_i;
      next_len_q  <= in_len_i;
      next_ptr_q  <= in_ptr_i;
      next_user_q <= in_user_i;
    end
    if (load) begin
      addr_q <= next_addr_q;
      len_q  <= next_len_q;
      ptr_q  <= next_ptr_q;
      user_q <= next_user_q;
    end else if (emit) begin
      addr_q <= addr_q + {51'b0, piece};
      len_q  <= len_q - {3'b0, piece};
      ptr_q  <= ptr_q + {3'b0, piece};
    end
    if (emit) begin
      out_addr_q <= addr_q;
      out_len_q  <= piece;
      out_ptr_q  <= ptr_q;
      out_user_q <= user_q;
      out_last_q <= last;
      out_void_q <= void_i;
    end
  end

  `FERRONIC_ASSERT_STABLE(PieceStable, out_valid_o, out_ready_i,
    ({out_addr_o, out_len_o, out_ptr_o, out_user_o, out_last_o, out_void_o}), clk_i, rst_ni)
  `FERRONIC_ASSERT(LengthKnown, !(in_valid_i && in_len_i == '0), clk_i, rst_ni)
endmodule
