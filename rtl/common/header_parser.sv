// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// The one header parser: walks over a frame in words of 8 bytes, whatever the data path's width,
// and tells its flow hash and whether its checksums are right.
//
// Ethernet with up to two VLAN tags (8100, 88a8); IPv4 with options; IPv6 with hop-by-hop and
// destination options; TCP and UDP. What it cannot parse gets no claim and hash 0. A claim
// (`sum_ok`) needs: no fragment; a right IPv4 header sum; a TCP or UDP sum that is there and right
// (a UDP sum of 0 means that there is none); lengths that agree, below 16 KiB; the first 8 bytes
// behind the IP headers inside the window. Bytes behind the IP packet are not counted; they may be
// there only in frames of at most WindowBytes. One hash folds addresses by XOR into 16 bits,
// another, unless it is a fragment, the source port and the destination port rotated by five bits,
// so that the two directions of a connection differ; lengths do not matter for them. `found_o`
// tells of any frame that has an IP header.
//
// IP headers start 2 bytes off a multiple of 4 and are multiples of 4 long, so TCP or UDP begins in
// half 1 or 3 of a word (a half is 2 bytes, big endian). One word a cycle without gaps; the result
// comes four cycles after the last word, in order. A frame that is begun anew before its `last`
// gets none.
//
// `hash_o` are the words of a frame, two cycles later, with what the hash of receive-side scaling
// covers of them: without a fragment's ports, or those of a type that is not asked for; IPv6
// extension headers are passed over. Only words with some of it come, and the last.
//
// `layout_valid_o` comes with the word behind the one in which TCP or UDP begins, in frames of
// which that is known; fragments are not among them.
//
// With a window (wide data paths) only the first WindowBytes are walked: `last` is the last word of
// those, and what is behind them comes as a sum of halves and a length.
`include "ferronic_assert.svh"
module header_parser
  import ferronic_pkg::*;
#(
  parameter int unsigned WindowBytes = 128,
  // Hashes apart, and `found_o`; otherwise `addr_hash_o` is both in one and the others are 0.
  parameter bit          Apart = 1'b1,
  // `port_hash_o` is that of the frames that answer.
  parameter bit          Reverse = 1'b0
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  input  logic        clr_i,

  input  logic        valid_i,
  input  logic        first_i,
  input  logic        last_i,
  input  logic [3:0]  bytes_i,      // of this word, 8 unless last
  input  logic [63:0] data_i,       // first byte in bits 7:0; bytes past `bytes_i` are zero
  input  logic [15:0] tail_sum_i,   // with last: one's complement sum behind the window
  input  logic [13:0] tail_len_i,   // with last: bytes behind the window

  input  hash_types_t hash_types_i,

  output logic        layout_valid_o,
  output hdr_layout_t layout_o,
  output logic        hash_valid_o,
  output hash_word_t  hash_o,
  output logic        result_valid_o,
  output logic        sum_ok_o,
  output hdr_found_t  found_o,
  output logic [15:0] addr_hash_o,
  output logic [15:0] port_hash_o
);
  localparam int unsigned WindowWords = WindowBytes / 8;
  localparam int unsigned WordW = $clog2(WindowWords) + 1;
  if (WindowBytes % 8 != 0 || WindowBytes < 64) begin : g_bad_window
    $error("%m: WindowBytes (%0d) must be a multiple of 8, at least 64", WindowBytes);
  end

  function automatic logic [15:0] rotated(input logic [15:0] half);
    rotated = {half[10:0], half[15:11]};
  endfunction

  localparam logic [15:0] EtIp4 = 16'h0800, EtIp6 = 16'h86dd, EtTag = 16'h8100, EtTag2 = 16'h88a8;
  localparam logic [7:0] NextHop = 8'd0, NextTcp = 8'd6, NextUdp = 8'd17, NextDest = 8'd60;

  logic [3:0][15:0] h;   // halves of the word
  for (genvar j = 0; j < 4; j++) begin : g_half
    assign h[j] = {data_i[16*j +: 8], data_i[16*j+8 +: 8]};
  end
  function automatic logic is_tag(input logic [15:0] et);
    is_tag = (et == EtTag) || (et == EtTag2);
  endfunction
  function automatic logic is_ip(input logic [15:0] et);
    is_ip = (et == EtIp4) || (et == EtIp6);
  endfunction

  // ---------------------------------------------------------------- where in the frame
  // Every register below is about the word at the input.
  typedef enum logic [2:0] {
    StTypes,  // word 1
    StTagged, // word 2, after a tag
    StIp,     // a word of the IP header but its first
    StPorts,  // the word behind the one in which TCP or UDP begins
    StL4,     // further on
    StOpaque  // nothing to say
  } st_e;
  st_e              st_q, st;
  logic             v6_q, off_q;       // IP begins in half 1, not 3, of its first word
  logic [2:0]       at_q;              // words since then, up to 7
  logic [5:0]       left_q;            // halves up to TCP or UDP, or an option header
  logic [14:0]      end_q;             // bytes up to the end of the IP packet, or negative
  logic [7:0]       next_q;            // what begins at `left_q`
  logic             frag_q, udp_q;
  logic             bad_q;             // a length is impossible
  logic             half3_q;           // TCP or UDP began in half 3 of the word before
  logic [15:0]      l4_len_q, h3_q;
  logic [WordW-1:0] word_q;            // number of this word, up to WindowWords

  // The first word of an IP header.
  wire [15:0] et     = (st_q == StTagged && !is_tag(h[0])) ? h[0] : h[2];
  wire        starts = (st_q == StTypes || st_q == StTagged) && !first_i && is_ip(et);
  wire        off    = (st_q == StTagged) && !is_tag(h[0]);
  wire [15:0] ip0    = off ? h[1] : h[3];
  wire        v6     = (et == EtIp6);
  wire        sound  = v6 ? (ip0[15:12] == 4'd6) : (ip0[15:12] == 4'd4 && ip0[11:8] >= 4'd5);

  wire        version = (ip0[15:12] == (v6 ? 4'd6 : 4'd4));
  hdr_found_t found_q, found;
  always_comb begin
    found = found_q;
    if (first_i) found = '0;
    if (starts && version) begin
      found.ip   = 1'b1;
      found.v6   = v6;
      found.tags = off ? 2'd1 : (st_q == StTagged) ? 2'd2 : 2'd0;
    end
  end
  always_ff @(posedge clk_i) begin
    if (valid_i) found_q <= found;
  end

  // The second: of what matters, only addresses come later.
  wire        second  = (st_q == StIp) && (at_q == 3'd1);
  wire [15:0] v4_frag = off_q ? h[0] : h[2];
  wire [ 7:0] v4_next = off_q ? h[1][7:0] : h[3][7:0];
  wire [ 7:0] v6_next = off_q ? h[0][15:8] : h[2][15:8];
  // Its length is there: behind a tag with the first word (if that is IP), else with the second.
  wire        after_tag = (st_q == StTagged);
  wire        len6    = after_tag ? (h[0] == EtIp6) : v6_q;
  wire [15:0] v_len   = after_tag ? (len6 ? h[3] : h[2]) : (len6 ? h[1] : h[0]);
  wire        has_len = after_tag || (second && !off_q);
  wire [14:0] to_end  = {1'b0, v_len[13:0]} +
                        (after_tag ? (len6 ? 15'd34 : -15'd6) : (len6 ? 15'd30 : -15'd10));

  // TCP, UDP or an option header of IPv6 begins.
  wire        begins  = (st_q == StIp) && !second && (left_q < 6'd4) && !first_i;
  wire        option  = begins && v6_q && (next_q == NextHop || next_q == NextDest);
  wire [15:0] opt     = left_q[1] ? h[3] : h[1];
  wire        is_udp  = (next_q == NextUdp);
  wire        in_window = (word_q < WordW'(WindowWords - 1));
  wire [14:0] l4_len  = end_q - {12'd0, left_q[1:0], 1'b0};
  wire        l4_long = !l4_len[14] && (l4_len >= (is_udp ? 15'd8 : 15'd20));
  wire        l4      = begins && !option && (next_q == NextTcp || is_udp) && !frag_q && in_window;

  always_comb begin
    st = st_q;
    if (first_i) st = StTypes;
    else begin
      unique case (st_q)
        StTypes:  st = (starts && sound) ? StIp : is_tag(h[2]) ? StTagged : StOpaque;
        StTagged: st = (starts && sound) ? StIp : StOpaque;
        StIp: begin
          if (!in_window || (option && |opt[7:4])) st = StOpaque;
          else if (begins && !option) st = l4 ? StPorts : StOpaque;
        end
        StPorts:  st = StL4;
        default:  st = st_q;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) st_q <= StOpaque;
    else if (valid_i) st_q <= st;
  end

  wire [14:0] end_next = end_q - 15'd8;
  always_ff @(posedge clk_i) begin
    if (valid_i) begin
      if (first_i) word_q <= WordW'(1);
      else if (word_q != WordW'(WindowWords)) word_q <= word_q + 1'b1;
      h3_q    <= h[3];
      half3_q <= left_q[1];
      if (has_len) end_q <= to_end;
      else end_q <= end_next[14] ? '0 : end_next;
      left_q  <= (left_q < 6'd4) ? '0 : left_q - 6'd4;
      if (at_q != 3'd7) at_q <= at_q + 3'd1;
      if (starts) begin
        at_q   <= 3'd1;
        v6_q   <= v6;
        off_q  <= off;
        frag_q <= 1'b0;
        bad_q  <= off && |v_len[15:14];
        left_q <= (v6 ? 6'd19 : {1'b0, ip0[11:8], 1'b0} - 6'd1) - {4'd0, off, 1'b0};
      end
      if (second) begin
        next_q <= v6_q ? v6_next : v4_next;
        frag_q <= !v6_q && (v4_frag[13:0] != '0);
        if (!off_q && |v_len[15:14]) bad_q <= 1'b1;
      end
      if (option) begin
        next_q <= opt[15:8];
        left_q <= {opt[3:0], left_q[1:0]};
      end
      if (l4) begin
        if (!l4_long) bad_q <= 1'b1;
        udp_q    <= is_udp;
        l4_len_q <= {1'b0, l4_len};
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) layout_valid_o <= 1'b0;
    else layout_valid_o <= valid_i && l4;
  end
  always_ff @(posedge clk_i) begin
    if (valid_i && starts) begin
      layout_o.v6    <= v6;
      layout_o.ip_at <= 7'({word_q, off ? 2'd1 : 2'd3});
    end
    if (valid_i && l4) begin
      layout_o.udp   <= is_udp;
      layout_o.l4_at <= 7'({word_q, left_q[1:0]});
    end
  end

  // A UDP header's length, and that there is a sum.
  wire [15:0] udp_len = half3_q ? h[1] : h3_q;
  wire [15:0] udp_sum = half3_q ? h[2] : h[0];
  wire        udp_bad = (st_q == StPorts) && udp_q && (udp_len != l4_len_q || udp_sum == '0);
  logic       udp_bad_q;
  always_ff @(posedge clk_i) begin
    if (valid_i) udp_bad_q <= !first_i && (udp_bad_q || udp_bad);
  end

  // ---------------------------------------------------------------- what counts
  logic [3:0] addr, ports, header;
  logic [7:0] take;
  wire        in_l4 = (st_q == StPorts) || (st_q == StL4);
  always_comb begin
    addr = '0;
    unique case (at_q)
      3'd1:    addr = v6_q ? (off_q ? 4'b1110 : 4'b1000) : (off_q ? 4'b1000 : 4'b0000);
      3'd2:    addr = v6_q ? 4'b1111 : (off_q ? 4'b0111 : 4'b1110);
      3'd3:    addr = v6_q ? 4'b1111 : (off_q ? 4'b0000 : 4'b0001);
      3'd4:    addr = v6_q ? 4'b1111 : 4'b0000;
      3'd5:    addr = v6_q ? (off_q ? 4'b0001 : 4'b0111) : 4'b0000;
      default: ;
    endcase
    if (st_q != StIp || first_i) addr = '0;
    ports = '0;
    if (l4) ports = left_q[1] ? 4'b1000 : 4'b0110;
    else if (st_q == StPorts && half3_q && !first_i) ports = 4'b0001;
    for (int unsigned j = 0; j < 4; j++) begin
      header[j] = starts ? (j == 3 || (off && j != 0)) :
                           (st_q == StIp && !first_i && left_q > 6'(j));
      for (int unsigned b = 2 * j; b < 2 * j + 2; b++) begin
        take[b] = addr[j] || (((l4 && left_q <= 6'(j)) || (in_l4 && !first_i)) && end_q > 15'(b));
      end
    end
  end

  // The end of the frame against the end of the IP packet.
  wire beyond = (word_q == WordW'(WindowWords));
  wire end_ok = (tail_len_i != '0) ? (end_q == {1'b0, tail_len_i} + 15'd8) :
                beyond ? (end_q == {11'd0, bytes_i}) : (end_q <= {11'd0, bytes_i});
  wire fine   = in_l4 && !first_i && !bad_q && !udp_bad_q && !udp_bad && end_ok;

  // ---------------------------------------------------------------- sums
  // Stage 1: halves and what counts of them. The pseudo-header's length and protocol go with the
  // word in which TCP or UDP begins, the tail with the last.
  logic [3:0][15:0] h1_q;
  logic [7:0]       take1_q;
  logic [3:0]       header1_q, addr1_q, ports1_q;
  logic             valid1_q, first1_q, last1_q, fine1_q, v6_1_q;
  logic [16:0]      extra1_q;
  hdr_found_t       found1_q;
  wire  [14:0]      pseudo = l4_len + (is_udp ? 15'd17 : 15'd6);
  always_ff @(posedge clk_i) begin
    h1_q      <= h;
    take1_q   <= take;
    header1_q <= header;
    addr1_q   <= addr;
    ports1_q  <= ports;
    found1_q  <= found;
    first1_q  <= first_i;
    fine1_q   <= fine;
    v6_1_q    <= v6_q;
    extra1_q  <= l4 ? {2'b00, pseudo} : (last_i && tail_len_i != '0) ? {1'b0, tail_sum_i} : '0;
  end

  // What receive-side scaling covers. Ports count if their type is asked for and they are in the
  // packet; halves behind the end of the frame do not.
  wire        want_ports = is_udp ? (v6_q ? hash_types_i.udp6 : hash_types_i.udp4)
                                  : (v6_q ? hash_types_i.tcp6 : hash_types_i.tcp4);
  wire        hash_ports = l4 && (l4_long || bad_q) && want_ports; // or longer than we count
  wire        want_addr = v6_q ? (hash_types_i.ip6 || hash_types_i.tcp6 || hash_types_i.udp6)
                               : (hash_types_i.ip4 || hash_types_i.tcp4 || hash_types_i.udp4);
  logic       hash_ports_q, hash_ip_q, hash_fresh_q;
  logic [3:0] there, hash_take1_q;
  always_comb begin
    for (int unsigned j = 0; j < 4; j++) there[j] = !last_i || (bytes_i > 4'(2 * j + 1));
  end
  always_ff @(posedge clk_i) begin
    hash_take1_q <= ((addr & {4{want_addr}}) | (ports & {4{l4 ? hash_ports : hash_ports_q}})) &
                    there;
    if (valid_i) begin
      if (first_i) begin
        hash_ip_q    <= 1'b0;
        hash_ports_q <= 1'b0;
      end else begin
        if (starts && sound) hash_ip_q <= 1'b1;
        if (l4) hash_ports_q <= hash_ports;
      end
    end
    if (valid1_q && first1_q) hash_fresh_q <= !hash_valid_o;
    else if (hash_valid_o) hash_fresh_q <= 1'b0;
  end
  assign hash_valid_o = valid1_q && (last1_q || hash_take1_q != '0);
  always_comb begin
    hash_o.first = first1_q || hash_fresh_q;
    hash_o.last  = last1_q;
    hash_o.take  = hash_take1_q;
    hash_o.half  = h1_q;
    if (hash_ports_q) begin
      hash_o.report = v6_1_q ? (udp_q ? HashUdp6 : HashTcp6) : (udp_q ? HashUdp4 : HashTcp4);
    end else begin
      hash_o.report = (hash_ip_q && v6_1_q && hash_types_i.ip6)   ? HashIp6 :
                      (hash_ip_q && !v6_1_q && hash_types_i.ip4)  ? HashIp4 : HashNone;
    end
  end

  // Stage 2: sums of the word.
  logic [18:0] l4_2_q;
  logic [17:0] ip_2_q;
  logic [15:0] addr_2_q, port_2_q;
  logic        valid2_q, first2_q, last2_q, fine2_q, v6_2_q;
  hdr_found_t  found2_q;
  logic [3:0][15:0] taken, headers;
  logic [15:0]      addr_fold, port_fold;
  always_comb begin
    addr_fold = '0;
    port_fold = '0;
    for (int unsigned j = 0; j < 4; j++) begin
      taken[j]   = {h1_q[j][15:8] & {8{take1_q[2*j]}}, h1_q[j][7:0] & {8{take1_q[2*j+1]}}};
      headers[j] = h1_q[j] & {16{header1_q[j]}};
      addr_fold ^= h1_q[j] & {16{addr1_q[j]}};
      // A source port comes in an odd half, the destination's in an even one.
      port_fold ^= (((j % 2 == 0) != Reverse) ? rotated(h1_q[j]) : h1_q[j]) & {16{ports1_q[j]}};
    end
  end
  always_ff @(posedge clk_i) begin
    l4_2_q   <= ((19'(taken[0]) + 19'(taken[1])) + (19'(taken[2]) + 19'(taken[3]))) +
                19'(extra1_q);
    ip_2_q   <= (18'(headers[0]) + 18'(headers[1])) + (18'(headers[2]) + 18'(headers[3]));
    addr_2_q <= Apart ? addr_fold : addr_fold ^ port_fold;
    port_2_q <= Apart ? port_fold : '0;
    found2_q <= Apart ? found1_q : '0;
    first2_q <= first1_q;
    fine2_q  <= fine1_q;
    v6_2_q   <= v6_1_q;
  end

  // Stage 3: sums of the frame: less than 2^11 words of 2^19.
  logic [29:0] l4_3_q;
  logic [21:0] ip_3_q;
  logic [15:0] addr_3_q, port_3_q;
  hdr_found_t  found3_q;
  logic        last3_q, fine3_q, v6_3_q;
  always_ff @(posedge clk_i) begin
    if (valid2_q) begin
      l4_3_q   <= (first2_q ? '0 : l4_3_q) + 30'(l4_2_q);
      ip_3_q   <= (first2_q ? '0 : ip_3_q) + 22'(ip_2_q);
      addr_3_q <= (first2_q ? '0 : addr_3_q) ^ addr_2_q;
      port_3_q <= (first2_q ? '0 : port_3_q) ^ port_2_q;
    end
    fine3_q <= fine2_q;
    v6_3_q  <= v6_2_q;
    found3_q <= found2_q;
  end

  // Stage 4: a sum is right if it is all ones.
  wire [16:0] l4_sum = 17'(l4_3_q[15:0]) + 17'(l4_3_q[29:16]);
  wire [16:0] ip_sum = 17'(ip_3_q[15:0]) + 17'(ip_3_q[21:16]);
  always_ff @(posedge clk_i) begin
    sum_ok_o       <= fine3_q && (l4_sum == 17'hffff) && (v6_3_q || ip_sum == 17'hffff);
    found_o        <= found3_q;
    found_o.sum_ok <= Apart && (ip_sum == 17'hffff);
    addr_hash_o    <= addr_3_q;
    port_hash_o    <= port_3_q;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      valid1_q <= 1'b0;
      valid2_q <= 1'b0;
      last1_q  <= 1'b0;
      last2_q  <= 1'b0;
      last3_q  <= 1'b0;
      result_valid_o <= 1'b0;
    end else begin
      valid1_q <= valid_i;
      valid2_q <= valid1_q;
      last1_q  <= valid_i && last_i;
      last2_q  <= last1_q;
      last3_q  <= last2_q;
      result_valid_o <= last3_q;
    end
  end

  logic unused;
  assign unused = ^{ip0[7:0], v4_frag[15:14], opt[7:4]};
endmodule
