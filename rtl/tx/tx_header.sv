// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Headers of a frame that is being cut into segments: their RAM, what is known of them, and what
// each segment needs changed.
//
// tx_stream loads the first bytes of the frame and reads them again for each segment. `parse_i`
// finds the headers (header_parser), adds up what does not change, and ends with `idle_o` and
// `ok_o`: up to 22 cycles for the search and one for each 2 bytes of IP header. `update_i` writes
// the fields of the next segment (8 cycles): IPv4 total length, ID, header sum; IPv6 payload
// length; TCP sequence number and flags; UDP length; and the pseudo header's sum in the place of
// the TCP or UDP sum, which is completed as any other sum is. Nothing that the driver wrote into
// lengths and sums is used.
//
// FIN and PSH are left to the last segment, CWR to the first (RFC 3168, section 6.1.2). IPv4 IDs
// count up. While `idle_o` the RAM belongs to tx_stream.
`include "ferronic_assert.svh"
module tx_header
  import ferronic_pkg::*;
  import tx_pkg::*;
#(
  parameter int unsigned DataW = 64,
  localparam int unsigned Beats = (TxHdrBytes * 8 + DataW - 1) / DataW,
  localparam int unsigned BeatW = (Beats > 1) ? $clog2(Beats) : 1
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             clr_i,

  // tx_stream; data come with the next cycle.
  input  logic             load_i,
  input  logic [BeatW-1:0] load_beat_i,
  input  logic [DataW-1:0] load_data_i,
  input  logic             re_i,
  input  logic [BeatW-1:0] beat_i,
  output logic [DataW-1:0] data_o,

  // Commands, while idle_o.
  output logic             idle_o,
  input  logic             parse_i,
  input  logic             update_i,
  input  logic [13:0]      bytes_i,     // payload of the segment
  input  logic             first_i,
  input  logic             last_i,

  // What parse_i found, valid from idle_o on.
  output logic             ok_o,
  output hdr_layout_t      layout_o,
  output logic [7:0]       hdr_len_o
);
  localparam int unsigned Words = TxHdrBytes / 8;
  localparam int unsigned PerBeat = DataW / 64;
  localparam int unsigned HalfW = $clog2(DataW / 16);  // a half is 2 bytes, big endian

  typedef logic [6:0] half_t;

  typedef enum logic [3:0] {
    StIdle  = 4'd0,
    StWalk  = 4'd1,  // through the parser
    StWait  = 4'd2,  // for its answer
    StAdd   = 4'd3,  // halves of IP, then of TCP, one a cycle
    StFold  = 4'd4,
    StFind  = 4'd5,  // the end of the headers
    StBegin = 4'd6,  // an update: lengths
    StLen   = 4'd7,
    StId    = 4'd8,
    StSum   = 4'd9,
    StIpSum = 4'd10,
    StSeq   = 4'd11, // or UDP's length
    StSeqLo = 4'd12,
    StFlags = 4'd13
  } st_e;
  st_e st_q;

  // ---------------------------------------------------------------- RAM
  logic              we;
  half_t             waddr, raddr_q;
  logic [15:0]       wdata;
  logic [BeatW-1:0]  beat;
  logic [4:0]        word_q;
  wire               walking = (st_q == StWalk);
  wire               adding = (st_q == StAdd);

  assign beat = walking ? BeatW'(word_q / 5'(PerBeat)) :
                adding ? BeatW'(raddr_q >> HalfW) : beat_i;
  for (genvar l = 0; l < int'(DataW / 16); l++) begin : g_half
    wire here = we && (waddr[HalfW-1:0] == HalfW'(l));
    prim_ram_1r1w #(.Width(16), .Depth(1 << BeatW), .InBlock(DataW == 64)) u_ram (
      .clk_i,
      .we_i   (load_i || here),
      .waddr_i(load_i ? load_beat_i : BeatW'(waddr >> HalfW)),
      .wdata_i(load_i ? load_data_i[16*l +: 16] : {wdata[7:0], wdata[15:8]}),
      .re_i   (re_i || walking || adding),
      .raddr_i(beat),
      .rdata_o(data_o[16*l +: 16])
    );
  end

  // ---------------------------------------------------------------- where they are
  // The word that was read, a cycle later in a register.
  logic        read_q, read_first_q, step_q, step_first_q;
  logic [63:0] word, step_word_q;
  if (PerBeat > 1) begin : g_word
    logic [$clog2(PerBeat)-1:0] sel_q;
    always_ff @(posedge clk_i) sel_q <= word_q[$clog2(PerBeat)-1:0];
    assign word = data_o[64*sel_q +: 64];
  end else begin : g_whole
    assign word = data_o;
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      read_q <= 1'b0;
      step_q <= 1'b0;
    end else begin
      read_q <= walking;
      step_q <= read_q;
    end
  end
  always_ff @(posedge clk_i) begin
    read_first_q <= (word_q == '0);
    step_first_q <= read_first_q;
    step_word_q  <= word;
  end
  logic        layout_valid, result_valid, sum_ok;
  logic [15:0] addr_hash, port_hash;
  hdr_found_t  found;
  hdr_layout_t layout;
  logic        hash_valid;
  hash_word_t  hash_word;
  header_parser #(.WindowBytes(TxHdrBytes)) u_parser (
    .clk_i, .rst_ni,
    .clr_i         (clr_i),
    .valid_i       (step_q),
    .first_i       (step_first_q),
    .last_i        (1'b0),
    .bytes_i       (4'd8),
    .data_i        (step_word_q),
    .tail_sum_i    ('0),
    .tail_len_i    ('0),
    .hash_types_i  ('0),
    .layout_valid_o(layout_valid),
    .layout_o      (layout),
    .hash_valid_o  (hash_valid),
    .hash_o        (hash_word),
    .result_valid_o(result_valid),
    .sum_ok_o      (sum_ok),
    .found_o       (found),
    .addr_hash_o   (addr_hash),
    .port_hash_o   (port_hash)
  );

  // ---------------------------------------------------------------- what they hold
  logic        ok_q;
  half_t       at_q;          // where IP, then TCP begins
  half_t       l4_at_q;
  logic        v6_q, udp_q;
  // The half whose address is out, that which was read, and that in `half_q`.
  logic             in_l4_q, get_q, get_l4_q, got_q, got_l4_q;
  logic [4:0]       r_q, get_r_q, got_r_q;  // its number in its header
  logic [HalfW-1:0] sel_q;
  logic [15:0]      half_q;
  logic [16:0] ip_q, pseudo_q;  // one's complement sums, the carry kept beside them
  logic [15:0] id_q, flags_q, len_q, l4_len_q;
  logic [31:0] seq_q;
  logic [7:0]  hdr_len_q, ip_add_q, l4_add_q;
  logic [13:0] bytes_q;
  logic        first_q, last_q;
  logic [16:0] sum_ip_q, sum_l4_q;

  function automatic logic [16:0] add(logic [16:0] sum, logic [15:0] x);
    return 17'(sum[15:0]) + 17'(x) + 17'(sum[16]);
  endfunction

  wire at_l4 = (raddr_q == l4_at_q) || in_l4_q;
  wire got_addr = v6_q ? (got_r_q >= 5'd4 && got_r_q <= 5'd19)
                       : (got_r_q >= 5'd6 && got_r_q <= 5'd9);
  wire got_fixed = (got_r_q != 5'd1) && (got_r_q != 5'd2) && (got_r_q != 5'd5);
  wire add_end = at_l4 && (udp_q || (in_l4_q && r_q == 5'd7));
  // From the start of the frame, of IP and of TCP or UDP to the end of the headers.
  wire [7:0] l4_bytes = udp_q ? 8'd8 : {2'b00, flags_q[15:12], 2'b00};
  wire [8:0] hdr_bytes = {1'b0, l4_at_q, 1'b0} + {1'b0, l4_bytes};

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      st_q <= StIdle;
    end else begin
      unique case (st_q)
        StIdle: begin
          if (parse_i) st_q <= StWalk;
          else if (update_i) st_q <= StBegin;
        end
        StWalk: begin
          if (layout_valid) st_q <= StAdd;
          else if (word_q == 5'(Words - 1)) st_q <= StWait;
        end
        StWait: begin
          if (layout_valid) st_q <= StAdd;
          else if (word_q == 5'(Words + 3)) st_q <= StIdle;
        end
        StAdd: if (add_end) st_q <= StFold;
        StFold: if (!get_q && !got_q) st_q <= StFind;
        StFind, StFlags: st_q <= StIdle;
        StBegin: st_q <= StLen;
        StLen: st_q <= StId;
        StId: st_q <= StSum;
        StSum: st_q <= StIpSum;
        StIpSum: st_q <= StSeq;
        StSeq: st_q <= udp_q ? StIdle : StSeqLo;
        StSeqLo: st_q <= StFlags;
        default: st_q <= StIdle;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    get_q    <= adding && !add_end;
    get_l4_q <= at_l4;
    get_r_q  <= (at_l4 && !in_l4_q) ? '0 : r_q;
    sel_q    <= raddr_q[HalfW-1:0];
    got_q    <= get_q;
    got_l4_q <= get_l4_q;
    got_r_q  <= get_r_q;
    half_q   <= {data_o[16*sel_q +: 8], data_o[16*sel_q+8 +: 8]};
    if (got_q) begin
      if (!got_l4_q) begin
        if (got_fixed) ip_q <= add(ip_q, half_q);
        if (got_addr) pseudo_q <= add(pseudo_q, half_q);
        if (got_r_q == 5'd2) id_q <= half_q;
      end else begin
        if (got_r_q == 5'd2) seq_q[31:16] <= half_q;
        if (got_r_q == 5'd3) seq_q[15:0] <= half_q;
        if (got_r_q == 5'd6) flags_q <= half_q;
      end
    end
    unique case (st_q)
      StIdle: begin
        word_q  <= '0;
        if (parse_i) ok_q <= 1'b0;
        bytes_q <= bytes_i;
        first_q <= first_i;
        last_q  <= last_i;
      end
      StWalk, StWait: begin
        word_q   <= word_q + 5'd1;
        at_q     <= layout.ip_at;
        raddr_q  <= layout.ip_at;
        l4_at_q  <= layout.l4_at;
        v6_q     <= layout.v6;
        udp_q    <= layout.udp;
        in_l4_q  <= 1'b0;
        r_q      <= '0;
        ip_q     <= '0;
        pseudo_q <= layout.udp ? 17'd17 : 17'd6;
      end
      StAdd: begin
        raddr_q <= raddr_q + 7'd1;
        in_l4_q <= at_l4;
        r_q     <= (at_l4 && !in_l4_q) ? 5'd1 : (r_q == 5'd31) ? r_q : r_q + 5'd1;
      end
      StFold: begin
        if (!get_q && !got_q) begin
          ip_q     <= add(ip_q, '0);
          pseudo_q <= add(pseudo_q, '0);
        end
      end
      StFind: begin
        ok_q      <= (udp_q || flags_q[15:12] >= 4'd5) && (hdr_bytes <= 9'(TxHdrBytes));
        hdr_len_q <= hdr_bytes[7:0];
        l4_add_q  <= l4_bytes;
        ip_add_q  <= hdr_bytes[7:0] - {at_q, 1'b0} - (v6_q ? 8'd40 : 8'd0);
      end
      StBegin: begin
        len_q    <= 16'(ip_add_q) + 16'(bytes_q);
        l4_len_q <= 16'(l4_add_q) + 16'(bytes_q);
        if (!first_q) id_q <= id_q + 16'd1;
      end
      StLen: begin
        sum_ip_q <= add(ip_q, len_q);
        sum_l4_q <= add(pseudo_q, l4_len_q);
      end
      StId: begin
        sum_ip_q <= add(sum_ip_q, id_q);
        sum_l4_q <= add(sum_l4_q, '0);
      end
      StSum: sum_ip_q <= add(sum_ip_q, '0);
      StFlags: seq_q <= seq_q + 32'(bytes_q);
      default: ;
    endcase
  end

  // ---------------------------------------------------------------- writes of an update
  logic [15:0] flags;
  assign flags = {flags_q[15:8], flags_q[7] && first_q, flags_q[6:4], flags_q[3] && last_q,
                  flags_q[2:1], flags_q[0] && last_q};
  half_t base, offset;
  always_comb begin
    we     = 1'b0;
    base   = at_q;
    offset = '0;
    wdata  = len_q;
    unique case (st_q)
      StLen: begin
        we     = 1'b1;
        offset = v6_q ? 7'd2 : 7'd1;
      end
      StId: begin
        we     = !v6_q;
        offset = 7'd2;
        wdata  = id_q;
      end
      StSum: begin
        we     = 1'b1;
        base   = l4_at_q;
        offset = udp_q ? 7'd3 : 7'd8;
        wdata  = sum_l4_q[15:0];
      end
      StIpSum: begin
        we     = !v6_q;
        offset = 7'd5;
        wdata  = ~sum_ip_q[15:0];
      end
      StSeq: begin
        we     = 1'b1;
        base   = l4_at_q;
        offset = 7'd2;
        wdata  = udp_q ? l4_len_q : seq_q[31:16];
      end
      StSeqLo: begin
        we     = 1'b1;
        base   = l4_at_q;
        offset = 7'd3;
        wdata  = seq_q[15:0];
      end
      StFlags: begin
        we     = 1'b1;
        base   = l4_at_q;
        offset = 7'd6;
        wdata  = flags;
      end
      default: ;
    endcase
  end
  assign waddr = base + offset;

  assign idle_o    = (st_q == StIdle);
  assign ok_o      = ok_q;
  assign hdr_len_o = hdr_len_q;
  assign layout_o  = '{v6: v6_q, udp: udp_q, ip_at: at_q, l4_at: l4_at_q};

  logic unused;
  assign unused = ^{result_valid, sum_ok, found, addr_hash, port_hash, hash_valid, hash_word};

  `FERRONIC_ASSERT(OneAtATime, !(parse_i || update_i) || idle_o, clk_i, rst_ni)
  `FERRONIC_ASSERT(LoadWhileIdle, !load_i || idle_o, clk_i, rst_ni)
endmodule
