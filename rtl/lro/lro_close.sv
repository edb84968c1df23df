// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Closes one unit at a time: headers first, then its buffers.
//
// A unit of one segment was written with the header it needs. One of several gets, by small writes
// over the start of its first buffer: the virtio header of a large packet (virtio 1.2, "Device
// Operation" of the network device), the length of the IP packet and the sum of an IPv4 header, PSH
// if its last segment has it, and the sum of TCP's pseudo header, not inverted; by the relaxed
// profile what the unit has of later segments, too. The bytes are laid into the scratch beside the
// frames in the receive RAM, which is held from then on until the last of these writes is done
// (`free_i`); the next unit with headers waits for that. The used entries follow as tokens, the
// last with `publish`, and so become visible at once.
//
// Latency: three cycles and two for each buffer; with headers, three to five more and the writes.
//
// Invariants: commands and tokens with `cmd` come together; a unit's entries leave in the order of
// its buffers, `publish` on the last only; the scratch changes only when no write from it is out.
`include "ferronic_assert.svh"
module lro_close
  import ferronic_pkg::*;
  import lro_pkg::*;
#(
  parameter int unsigned DataW = 64,
  parameter bit Relaxed = 1'b0   // that profile can be set
) (
  input  logic           clk_i,
  input  logic           rst_ni,
  input  logic           fn_rst_i,

  input  logic           start_i,
  input  logic           push_i,      // the last segment had PSH
  input  logic           forget_i,    // its queue is gone: nothing is written
  output logic           done_o,      // one cycle; the context is free
  input  logic           free_i,

  // The unit, from the cycle after `start_i` until `done_o`.
  input  logic [63:0]    first_i,
  input  lro_unit_head_t head_i,
  input  lro_unit_end_t  end_i,
  input  logic [13:0]    size_i,
  input  logic [15:0]    total_i,
  output logic           list_re_o,
  output logic [5:0]     list_at_o,
  input  lro_buffer_t    list_i,

  output logic           scratch_hold_o,
  output logic           scratch_valid_o,
  input  logic           scratch_ready_i,
  output logic [1:0]     scratch_word_o,
  output logic [DataW-1:0] scratch_data_o,
  input  logic [15:0]    scratch_ptr_i,

  output logic           cmd_valid_o,
  input  logic           cmd_ready_i,  // with room for its token
  output dma_wr_cmd_t    cmd_o,
  output logic           cmd_last_o,   // the last of this unit
  output logic           tok_valid_o,  // an entry
  input  logic           tok_ready_i,
  output lro_buffer_t    tok_o,
  output logic           tok_publish_o
);
  typedef enum logic [2:0] {
    StIdle,
    StLoad,
    StTurn,    // until the scratch is free
    StScratch, // one word after another
    StCmd,     // one write after another
    StList,    // an entry is read
    StToken,
    StDone
  } st_e;
  st_e         st_q;
  logic [5:0]  at_q;
  logic [63:0] addr_q;
  logic        push_q, forget_q, hold_q;

  // As the unit says; copies, since its RAM is far from here.
  logic        v6_q, ece_q;
  logic [1:0]  tags_q;
  logic [7:0]  pay_at_q;
  wire merged = end_i.merged;
  wire last   = (at_q == end_i.full);

  // ---------------------------------------------------------------- what the headers say
  wire         relaxed = Relaxed && end_i.latest.on;
  logic [15:0] ip_len_q, ip_rest_q, tcp_sum_q;
  function automatic logic [15:0] add(input logic [15:0] a, input logic [15:0] b);
    logic [16:0] once;
    once = 17'(a) + 17'(b);
    add = once[15:0] + 16'(once[16]);
  endfunction
  function automatic logic [15:0] big(input logic [15:0] half);
    big = {half[7:0], half[15:8]};
  endfunction
  // TCP's length and protocol number, as addends of the pseudo header.
  logic [15:0] total_q, pseudo_q, base_q, addresses_q;
  always_ff @(posedge clk_i) begin
    if (st_q == StLoad) begin
      v6_q        <= head_i.head.v6;
      ece_q       <= head_i.head.ece;
      tags_q      <= head_i.head.tags;
      pay_at_q    <= head_i.head.pay_at;
      total_q     <= total_i;
      base_q      <= head_i.head.ip_base;
      addresses_q <= head_i.head.addr_sum;
      pseudo_q    <= total_i - (head_i.head.v6 ? 16'd34 : 16'd14);
    end
    ip_len_q  <= v6_q ? total_q - 16'd40 : total_q;
    ip_rest_q <= add(base_q, total_q);
    tcp_sum_q <= add(addresses_q, pseudo_q);
  end

  wire [7:0] ip_at = 8'd14 + {4'd0, tags_q, 2'b00};
  wire [7:0] l4_at = ip_at + (v6_q ? 8'd40 : 8'd20);
  localparam logic [7:0] NeedsCsum = 8'd1, GsoTcp4 = 8'd1, GsoTcp6 = 8'd4;
  localparam logic [15:0] CsumOffset = 16'd16;

  // In the scratch: the virtio header, IP length, IPv4 sum, flags, TCP sum. By the relaxed profile:
  // with IPv6's length the hop limit, with IPv4's sum the time to live before, with the flags the
  // window and TCP's sum behind, acknowledgement, echoed time stamp.
  typedef enum logic [2:0] {PlHeader, PlLength, PlSum, PlFlags, PlTcp, PlAck, PlEcho} place_e;
  wire place_e end_place = !relaxed ? PlTcp : end_i.latest.stamped ? PlEcho : PlFlags;
  localparam logic [7:0] ProtoTcp = 8'd6;
  localparam int unsigned Bytes = Relaxed ? ScratchBytes : 24;
  localparam int unsigned Words = (Bytes * 8 + DataW - 1) / DataW;
  function automatic logic [31:0] big4(input logic [31:0] word);
    big4 = {big(word[15:0]), big(word[31:16])};
  endfunction
  place_e      place_q;
  logic [1:0]  word_q;
  logic [15:0] ip_sum, beside;
  logic [31:0] fourth;
  logic [63:0] last_word;
  logic [Words-1:0][DataW-1:0] scratch;
  always_comb begin
    ip_sum    = ~(Relaxed ? add(ip_rest_q, {end_i.latest.ttl, 8'd0}) : ip_rest_q);
    beside    = v6_q ? {end_i.latest.ttl, ProtoTcp} : {ProtoTcp, end_i.latest.ttl};
    fourth    = relaxed ? big4(end_i.latest.ack) : {big(tcp_sum_q), 16'd0};
    last_word = {big4(end_i.latest.echo), 8'd0, big(tcp_sum_q), end_i.latest.window[7:0]};
    scratch   = (Words * DataW)'({
      Relaxed ? last_word : 64'd0,
      Relaxed ? end_i.latest.window[15:8] : 8'd0, 1'b0, ece_q, 2'b01, push_q, 3'b000,
      big(ip_sum), Relaxed ? beside : 16'd0, big(ip_len_q),
      fourth, 16'd1 + {10'd0, end_i.full}, CsumOffset,
      8'd0, l4_at, 2'd0, relaxed ? end_i.latest.size : size_i, 8'd0, pay_at_q,
      v6_q ? GsoTcp6 : GsoTcp4, NeedsCsum
    });
  end
  function automatic logic [4:0] offset(input place_e place, input logic more);
    unique case (place)
      PlLength: offset = 5'd16;
      PlSum:    offset = more ? 5'd18 : 5'd20;
      PlFlags:  offset = 5'd22;
      PlTcp:    offset = 5'd14;
      PlAck:    offset = 5'd12;
      PlEcho:   offset = 5'd28;
      default:  offset = 5'd0;
    endcase
  endfunction
  // Written a cycle later.
  logic             scratch_valid_q;
  logic [1:0]       scratch_word_q;
  logic [DataW-1:0] scratch_data_q;
  wire  scratch_take = (st_q == StScratch) && (!scratch_valid_q || scratch_ready_i);
  wire  scratch_end  = (word_q == 2'(Words - 1));
  always_ff @(posedge clk_i) begin
    if (!rst_ni || fn_rst_i) scratch_valid_q <= 1'b0;
    else scratch_valid_q <= scratch_take || (scratch_valid_q && !scratch_ready_i);
    if (scratch_take) begin
      scratch_word_q <= word_q;
      scratch_data_q <= scratch[(Words > 1) ? word_q : 2'd0];
    end
  end
  assign scratch_hold_o  = hold_q;
  assign scratch_valid_o = scratch_valid_q;
  assign scratch_word_o  = scratch_word_q;
  assign scratch_data_o  = scratch_data_q;

  // ---------------------------------------------------------------- writes
  // The next place that this unit has, and how far its bytes lie behind those of this one.
  place_e     next_place;
  logic [5:0] distance;
  always_comb begin
    next_place = PlTcp;
    distance   = 6'd3;
    unique case (place_q)
      PlHeader: begin
        next_place = PlLength;
        distance   = 6'(VirtioHdrBytes) + ip_at[5:0] + (v6_q ? 6'd4 : 6'd2);
      end
      PlLength: begin
        next_place = !v6_q ? PlSum : push_q ? PlFlags : PlTcp;
        distance   = !v6_q ? 6'd8 : push_q ? 6'd49 : 6'd52;
      end
      PlSum: begin
        next_place = push_q ? PlFlags : PlTcp;
        distance   = push_q ? 6'd23 : 6'd26;
      end
      default: ;
    endcase
    if (relaxed) begin
      unique case (place_q)
        PlLength: begin
          next_place = v6_q ? PlAck : PlSum;
          distance   = v6_q ? 6'd44 : 6'd6;
        end
        PlSum: begin
          next_place = PlAck;
          distance   = 6'd20;
        end
        PlAck: begin
          next_place = PlFlags;
          distance   = 6'd5;
        end
        PlFlags: begin
          next_place = PlEcho;
          distance   = 6'd15;
        end
        default: ;
      endcase
    end
  end

  assign cmd_valid_o = (st_q == StCmd) && !scratch_valid_q;
  assign cmd_last_o  = (place_q == end_place);
  assign cmd_o.addr  = addr_q;
  always_comb begin
    cmd_o.len = 16'd2;
    unique case (place_q)
      PlHeader:         cmd_o.len = 16'(VirtioHdrBytes);
      PlFlags:          cmd_o.len = relaxed ? 16'd5 : 16'd1;
      PlLength:         if (relaxed && v6_q) cmd_o.len = 16'd4;
      PlSum:            if (relaxed) cmd_o.len = 16'd4;
      PlAck, PlEcho:    cmd_o.len = 16'd4;
      default: ;
    endcase
  end
  assign cmd_o.ptr   = scratch_ptr_i + {11'd0, offset(place_q, relaxed)};

  assign list_re_o     = (st_q == StList);
  assign list_at_o     = at_q;
  assign tok_valid_o   = (st_q == StToken);
  assign tok_o         = last ? end_i.buffer : list_i;
  assign tok_publish_o = last;
  assign done_o        = (st_q == StDone);

  always_ff @(posedge clk_i) begin
    if (!rst_ni || fn_rst_i) begin
      st_q   <= StIdle;
      hold_q <= 1'b0;
    end else begin
      hold_q <= (st_q == StTurn && !hold_q) || (hold_q && !free_i);
      unique case (st_q)
        StIdle: if (start_i) st_q <= StLoad;
        StLoad: st_q <= forget_q ? StDone : merged ? StTurn : StList;
        StTurn: if (!hold_q) st_q <= StScratch;
        StScratch: if (scratch_take && scratch_end) st_q <= StCmd;
        StCmd: if (cmd_valid_o && cmd_ready_i && place_q == end_place) st_q <= StList;
        StList: st_q <= StToken;
        StToken: if (tok_ready_i) st_q <= last ? StDone : StList;
        StDone: st_q <= StIdle;
        default: st_q <= StIdle;
      endcase
    end
  end
  always_ff @(posedge clk_i) begin
    unique case (st_q)
      StIdle: begin
        push_q   <= push_i;
        forget_q <= forget_i;
        place_q  <= PlHeader;
        word_q   <= '0;
        at_q     <= '0;
      end
      StLoad: addr_q <= first_i;
      StScratch: if (scratch_take) word_q <= word_q + 2'd1;
      StCmd: begin
        if (cmd_valid_o && cmd_ready_i) begin
          place_q <= next_place;
          addr_q  <= addr_q + 64'(distance);
        end
      end
      StToken: if (tok_ready_i) at_q <= at_q + 6'd1;
      default: ;
    endcase
  end

  logic unused;
  assign unused = ^{head_i.q, end_i.more, end_i.left, end_i.addr, end_i.latest};

  `FERRONIC_ASSERT_STABLE(CmdStable, cmd_valid_o, cmd_ready_i || fn_rst_i, cmd_o, clk_i, rst_ni)
  `FERRONIC_ASSERT_STABLE(TokStable, tok_valid_o, tok_ready_i || fn_rst_i, {tok_o, tok_publish_o},
                          clk_i, rst_ni)
  `FERRONIC_ASSERT(HeldWhileUsed, !(st_q inside {StScratch, StCmd}) || (hold_q && !free_i) ||
                   fn_rst_i, clk_i, rst_ni)
endmodule
