// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Proof of lro_close, from a reset on and without bound: a unit leaves as a whole, or not at all.
//
// Its entries are those of its buffers, each once, in order, `publish` on the last alone; of a unit
// that is forgotten there is no entry and no write. A unit of one segment is not written to again;
// in one of several the fields of its headers are written, each once and where it lies, from a
// word that was filled before, and before the first entry; num_buffers is the number of entries.
// Nothing is put into the scratch that is not held, or while a write from it is out.
//
// Assumed: one unit at a time; it stays as it is while it is closed; writes end in
// order, some time after they are taken. Units have up to four buffers.
module lro_close_fv
  import ferronic_pkg::*;
  import lro_pkg::*;
#(
  parameter bit Relaxed = 1'b0
) (
  input logic       clk_i,
  input logic       start_i,
  input logic       push_i,
  input logic       forget_i,
  input logic       v6_i,
  input logic       merged_i,
  input logic       relaxed_i,
  input logic       stamped_i,      // it has time stamps
  input logic [1:0] tags_i,
  input logic [1:0] full_i,         // buffers before the last
  input logic       free_i,         // the last write of a unit is done
  input logic       scratch_ready_i,
  input logic       cmd_ready_i,
  input logic       tok_ready_i
);
  logic rst_n = 1'b0;
  always_ff @(posedge clk_i) rst_n <= 1'b1;

  logic busy_q, forget_q, push_q, v6_q, merged_q, relaxed_q, stamped_q;
  logic [1:0] tags_q;
  logic [5:0] full_q;
  wire  start = start_i && !busy_q && rst_n;

  // The id of a buffer says which one it is.
  localparam logic [10:0] LastId = 11'h400;
  logic           done, list_re, scratch_hold, scratch_valid, cmd_valid, cmd_last;
  logic           tok_valid, tok_publish;
  logic [5:0]     list_at;
  lro_unit_head_t head;
  lro_unit_end_t  last;
  lro_buffer_t    listed_q, tok;
  logic [1:0]     scratch_word;
  logic [63:0]    scratch_data;
  dma_wr_cmd_t    cmd;
  always_comb begin
    head             = '0;
    head.head.v6     = v6_q;
    head.head.tags   = tags_q;
    last             = '0;
    last.merged      = merged_q;
    last.full        = full_q;
    last.buffer.id   = LastId;
    last.latest.on      = relaxed_q;
    last.latest.stamped = stamped_q;
  end
  always_ff @(posedge clk_i) if (list_re) listed_q <= '{id: 11'(list_at), len: '0};

  lro_close #(.Relaxed(Relaxed)) u_dut (
    .clk_i,
    .rst_ni         (rst_n),
    .fn_rst_i       (1'b0),
    .start_i        (start),
    .push_i,
    .forget_i,
    .done_o         (done),
    .free_i,
    .first_i        ('0),
    .head_i         (head),
    .end_i          (last),
    .size_i         ('0),
    .total_i        ('0),
    .list_re_o      (list_re),
    .list_at_o      (list_at),
    .list_i         (listed_q),
    .scratch_hold_o (scratch_hold),
    .scratch_valid_o(scratch_valid),
    .scratch_ready_i,
    .scratch_word_o (scratch_word),
    .scratch_data_o (scratch_data),
    .scratch_ptr_i  ('0),
    .cmd_valid_o    (cmd_valid),
    .cmd_ready_i,
    .cmd_o          (cmd),
    .cmd_last_o     (cmd_last),
    .tok_valid_o    (tok_valid),
    .tok_ready_i,
    .tok_o          (tok),
    .tok_publish_o  (tok_publish)
  );

  // ---------------------------------------------------------------- the unit that is closed
  typedef enum logic [2:0] {Header, Length, Sum, Ack, Flags, Tcp, Echo, None} field_e;
  field_e     field_q, field_next;      // to be written next
  logic [6:0] count_q;                  // entries that left
  logic [3:0] filled_q;                 // words
  logic       out_q, last_out_q;        // writes are out, and the last of the unit is
  wire [7:0]  ip_at = 8'd26 + {4'd0, tags_q, 2'b00};     // behind the virtio header
  wire [7:0]  l4_at = ip_at + (v6_q ? 8'd40 : 8'd20);
  logic [7:0] at;
  logic [4:0] place;                    // byte of the scratch
  logic [15:0] bytes;
  always_comb begin
    unique case (field_q)
      Header:  begin at = 8'd0;                          place = 5'd0; end
      Length:  begin at = ip_at + (v6_q ? 8'd4 : 8'd2);  place = 5'd16; end
      Sum:     begin at = ip_at + (relaxed_q ? 8'd8 : 8'd10); place = relaxed_q ? 5'd18 : 5'd20; end
      Ack:     begin at = l4_at + 8'd8;                  place = 5'd12; end
      Flags:   begin at = l4_at + 8'd13;                 place = 5'd22; end
      Echo:    begin at = l4_at + 8'd28;                 place = 5'd28; end
      default: begin at = l4_at + 8'd16;                 place = 5'd14; end
    endcase
    unique case (field_q)
      Header:  field_next = Length;
      Length:  field_next = !v6_q ? Sum : push_q ? Flags : Tcp;
      Sum:     field_next = push_q ? Flags : Tcp;
      Flags:   field_next = Tcp;
      default: field_next = None;
    endcase
    // The flags go together with window and sum.
    if (relaxed_q) begin
      unique case (field_q)
        Header:  field_next = Length;
        Length:  field_next = v6_q ? Ack : Sum;
        Sum:     field_next = Ack;
        Ack:     field_next = Flags;
        Flags:   field_next = stamped_q ? Echo : None;
        default: field_next = None;
      endcase
    end
    bytes = 16'd2;
    unique case (field_q)
      Header:    bytes = 16'd12;
      Flags:     bytes = relaxed_q ? 16'd5 : 16'd1;
      Length:    if (relaxed_q && v6_q) bytes = 16'd4;
      Sum:       if (relaxed_q) bytes = 16'd4;
      Ack, Echo: bytes = 16'd4;
      default: ;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_n) busy_q <= 1'b0;
    else busy_q <= start || (busy_q && !done);
    if (start) begin
      forget_q <= forget_i;
      push_q   <= push_i;
      v6_q     <= v6_i;
      merged_q <= merged_i;
      relaxed_q <= Relaxed && relaxed_i;
      stamped_q <= stamped_i;
      tags_q   <= tags_i;
      full_q   <= 6'(full_i);
      field_q  <= Header;
      count_q  <= '0;
      filled_q <= '0;
    end else begin
      if (cmd_valid && cmd_ready_i) begin
        field_q <= field_next;
      end
      if (tok_valid && tok_ready_i) count_q <= count_q + 7'd1;
      if (scratch_valid && scratch_ready_i) filled_q[scratch_word] <= 1'b1;
    end
    out_q      <= rst_n && ((cmd_valid && cmd_ready_i) || (out_q && !free_i));
    last_out_q <= rst_n && ((cmd_valid && cmd_ready_i && cmd_last) || (last_out_q && !free_i));
  end

  always_comb begin
    assume (tags_i != 2'd3);
    assume (!free_i || last_out_q);
  end

  // ---------------------------------------------------------------- what must hold
  always_comb begin
    if (rst_n) begin
      if (tok_valid) begin
        OfAUnit: assert (busy_q && !forget_q && count_q <= 7'(full_q));
        InOrder: assert (tok.id == ((count_q == 7'(full_q)) ? LastId : 11'(count_q)));
        LastPublishes: assert (tok_publish == (count_q == 7'(full_q)));
        HeadersBefore: assert (!merged_q || field_q == None);
      end
      if (done) begin
        Whole: assert (busy_q && count_q == (forget_q ? 7'd0 : 7'(full_q) + 7'd1));
      end
      if (out_q) begin
        Held: assert (scratch_hold);
      end
      if (cmd_valid) begin
        LastOne: assert (cmd_last == (field_next == None));
        Merged: assert (busy_q && !forget_q && merged_q && count_q == '0 && field_q != None);
        InPlace: assert (cmd.addr[15:0] == 16'(at) && cmd.len == bytes);
        Filled: assert (cmd.ptr == 16'(place) && filled_q[(Relaxed ? 3 : 2):0] == '1);
      end
      if (scratch_valid) begin
        NotInUse: assert (busy_q && scratch_hold && !out_q);
        if (scratch_word == 2'd1)
          NumBuffers: assert (scratch_data[31:16] == 16'(full_q) + 16'd1);
      end
    end
  end
endmodule
